//! Every bound of the formats in one place. Bounds of one memory are looser here than at the tools: what was stored
//! once must be exportable, and what was exported must be importable.

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Bytes of one file, unpacked. Costs time only: files are read as a stream.
pub const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Bytes of one record as JSON. Costs three times that many bytes while the record is read or written. A memory with
/// 1,000 versions of 64 KiB fits.
pub const RECORD_BYTES_MAX: usize = 128 * MIB;
/// Bytes of one member before the records, such as the scope.
pub const HEADER_BYTES_MAX: usize = 64 * KIB;
/// Memories of one file. Costs 16 bytes each, to find links without an end.
pub const NODES_MAX: u64 = 5_000_000;
/// Records of any other sort in one file.
pub const RECORDS_MAX: u64 = 50_000_000;
/// Nesting of JSON.
pub const DEPTH_MAX: usize = 32;

/// A label.
pub const LABEL_BYTES_MAX: usize = 800;
/// A content, an alias.
pub const CONTENT_BYTES_MAX: usize = 64 * KIB;
/// A verbatim turn.
pub const TURN_BYTES_MAX: usize = MIB;
/// A source prompt.
pub const SOURCE_PROMPT_BYTES_MAX: usize = 8 * KIB;
/// Metadata as canonical JSON.
pub const METADATA_BYTES_MAX: usize = 16 * KIB;
/// Nesting of metadata: an object with a number in it has depth 1.
pub const METADATA_DEPTH_MAX: usize = 4;
/// A project, agent, session, tag, author or namespace, a word of a link, and other short text.
pub const SHORT_BYTES_MAX: usize = 1_024;
/// A reason, a note, the words of a claim.
pub const NOTE_BYTES_MAX: usize = 4 * KIB;
/// Tags of a memory, those that rules set included.
pub const TAGS_MAX: usize = 256;
/// Words that the ends of a link share.
pub const TERMS_MAX: usize = 64;

/// Members of a container, directories and doubles included.
pub const MEMBERS_MAX: u64 = 16;
/// How many times larger a member may be unpacked than packed.
pub const RATIO_MAX: u64 = 200;
/// A manifest. Costs three times that many bytes.
pub const MANIFEST_BYTES_MAX: usize = 16 * MIB;
/// An encrypted member, which is made and read as one piece. Costs three times that many bytes.
pub const ENCRYPTED_BYTES_MAX: usize = 256 * MIB;
/// Session records of a container, which are kept until their place in the file. Costs that many bytes.
pub const WINDOWS_BYTES_MAX: usize = 64 * MIB;
/// Records of a container that is compared or merged. Costs about 2 KiB each.
pub const COMPARED_RECORDS_MAX: usize = 200_000;
/// Bytes of a container that is compared or merged, unpacked. Costs twice that many bytes.
pub const COMPARED_BYTES_MAX: usize = 512 * MIB;
