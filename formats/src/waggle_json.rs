//! Waggle's own JSON backup, up to schema version 7: read only. Members may stand in any order; older files lack some.
//!
//! The file is read twice: once to find its members and to check that every record is JSON within its bound, then in the
//! order in which records are needed.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

use serde_json::Value;

use crate::abhi::{Report, Taken, record_of};
use crate::error::{Place, ReadError};
use crate::json;
use crate::limits::{HEADER_BYTES_MAX, MANIFEST_BYTES_MAX, RECORD_BYTES_MAX};
use crate::scanner::Scanner;
use crate::waggle::{Importer, transcript};
use waggle_memory::record::Record;

/// The newest version that is read.
pub const SCHEMA_VERSION_MAX: u64 = 7;

/// Members with records, in the order in which they are read, and the words under which `.abhi` has them.
const LISTS: [(&str, &str); 4] = [
    ("context_windows", "context_windows.jsonl"),
    ("transcripts", "transcripts.jsonl"),
    ("nodes", "nodes.jsonl"),
    ("edges", "edges.jsonl"),
];
/// Members of one file.
const MEMBERS_MAX: usize = 64;

/// A backup whose members are known.
pub struct Reader<R> {
    input: R,
    /// Version that the file states.
    schema_version: u64,
    tenant_id: String,
    repos: BTreeMap<String, String>,
    /// Where each list begins.
    lists: BTreeMap<&'static str, u64>,
}

impl<R: Read + Seek> Reader<R> {
    /// Reads the whole file once.
    pub fn open(mut input: R) -> Result<Self, ReadError> {
        input.seek(SeekFrom::Start(0))?;
        let mut scan = Scan {
            scanner: Scanner::new(&mut input),
            base: 0,
        };
        if !scan.take_if("file", b'{')? {
            return Err(wrong("it does not begin with an object"));
        }
        let mut found = Found::default();
        let mut first = true;
        while !scan.take_if("file", b'}')? {
            if !first {
                scan.take("file", b',', "a comma between members")?;
            }
            first = false;
            found.members += 1;
            if found.members > MEMBERS_MAX {
                return Err(wrong("it has more than 64 members"));
            }
            let member: String = scan.value("file", HEADER_BYTES_MAX)?;
            scan.take("file", b':', "a colon after the name")?;
            scan.member(&member, &mut found)?;
        }
        if scan.peek("file")?.is_some() {
            return Err(wrong("something follows the object"));
        }
        let Some(schema_version) = found.schema_version else {
            return Err(wrong("schema_version is missing"));
        };
        if !found.lists.contains_key("nodes") {
            return Err(wrong("nodes are missing"));
        }
        Ok(Self {
            input,
            schema_version,
            tenant_id: found.tenant_id,
            repos: found.repos,
            lists: found.lists,
        })
    }

    /// What the file states.
    pub const fn schema_version(&self) -> u64 {
        self.schema_version
    }

    /// Whose graph it was. Never chooses where an import goes.
    pub fn tenant_id(&self) -> &str {
        &self.tenant_id
    }

    /// Gives every record to `sink`: sessions, turns, memories, links. Links without an end are left out, and refuse
    /// the file at its end unless they are allowed: read once without a purpose before anything is done with the
    /// records.
    pub fn records<E: From<ReadError>>(
        &mut self,
        importer: &Importer,
        allow_dangling: bool,
        mut sink: impl FnMut(Record) -> Result<(), E>,
    ) -> Result<Report, E> {
        let mut taken = Taken::default();
        for (member, as_lines) in LISTS {
            let Some(start) = self.lists.get(member).copied() else {
                continue;
            };
            self.input.seek(SeekFrom::Start(start)).map_err(ReadError::from)?;
            let mut scan = Scan {
                scanner: Scanner::new(&mut self.input),
                base: start,
            };
            let mut items = Items::default();
            while let Some((line, place)) = scan.item(member, &mut items)? {
                let changes = &mut taken.report.changes;
                let record =
                    record_of(as_lines, line, &self.repos, importer, changes).map_err(|why| ReadError::Malformed {
                        place: place.clone(),
                        why,
                    })?;
                if let Some(record) = record
                    && taken.take(&record, &place)?
                {
                    sink(record)?;
                }
            }
        }
        if !allow_dangling && !taken.report.dangling.is_empty() {
            return Err(ReadError::Dangling(taken.report.dangling).into());
        }
        Ok(taken.report)
    }
}

#[derive(Default)]
struct Found {
    members: usize,
    schema_version: Option<u64>,
    tenant_id: String,
    repos: BTreeMap<String, String>,
    lists: BTreeMap<&'static str, u64>,
}

/// How far a list was read.
#[derive(Default)]
struct Items {
    opened: bool,
    index: u64,
}

struct Scan<R> {
    scanner: Scanner<R>,
    /// Bytes of the file before the scanner's first.
    base: u64,
}

impl<R: Read> Scan<R> {
    fn member(&mut self, member: &str, found: &mut Found) -> Result<(), ReadError> {
        match member {
            "schema_version" => {
                let version: u64 = self.value("schema_version", HEADER_BYTES_MAX)?;
                if version == 0 || version > SCHEMA_VERSION_MAX {
                    return Err(ReadError::WrongVersion {
                        found: version.to_string(),
                        readable: "1 to 7",
                    });
                }
                found.schema_version = Some(version);
            }
            "tenant_id" => {
                found.tenant_id = self
                    .value::<Option<String>>("tenant_id", HEADER_BYTES_MAX)?
                    .unwrap_or_default();
            }
            "repos" => found.repos = transcript::repos(&self.value("repos", MANIFEST_BYTES_MAX)?),
            _ => match LISTS.iter().find(|(list, _)| *list == member) {
                Some((list, _)) => {
                    self.peek(list)?;
                    if found.lists.insert(list, self.base + self.scanner.position()).is_some() {
                        return Err(wrong("a member is there twice"));
                    }
                    let mut items = Items::default();
                    while self.item(list, &mut items)?.is_some() {}
                }
                None => {
                    self.value::<serde::de::IgnoredAny>("file", RECORD_BYTES_MAX)?;
                }
            },
        }
        Ok(())
    }

    /// The next record of a list, which may be null.
    fn item(&mut self, member: &'static str, items: &mut Items) -> Result<Option<(Value, Place)>, ReadError> {
        if !items.opened {
            if self.peek(member)? == Some(b'n') {
                self.value::<()>(member, HEADER_BYTES_MAX)?;
                return Ok(None);
            }
            self.take(member, b'[', "a list")?;
            items.opened = true;
        }
        if self.take_if(member, b']')? {
            return Ok(None);
        }
        if items.index > 0 {
            self.take(member, b',', "a comma between records")?;
        }
        let mut place = self.place(member);
        place.index = Some(items.index);
        let json = self
            .scanner
            .value(RECORD_BYTES_MAX, "bytes in one record")
            .map_err(|trouble| trouble.at(place.clone()))?;
        let value = json::parse(json).map_err(|why| ReadError::Malformed {
            place: place.clone(),
            why,
        })?;
        items.index += 1;
        Ok(Some((value, place)))
    }

    fn value<T: serde::de::DeserializeOwned>(
        &mut self,
        member: &'static str,
        bytes_max: usize,
    ) -> Result<T, ReadError> {
        let place = self.place(member);
        let json = self
            .scanner
            .value(bytes_max, "bytes in one member")
            .map_err(|trouble| trouble.at(place.clone()))?;
        json::parse(json).map_err(|why| ReadError::Malformed { place, why })
    }

    fn peek(&mut self, member: &'static str) -> Result<Option<u8>, ReadError> {
        let result = self.scanner.peek();
        result.map_err(|trouble| trouble.at(self.place(member)))
    }

    fn take(&mut self, member: &'static str, wanted: u8, what: &'static str) -> Result<(), ReadError> {
        let result = self.scanner.take(wanted, what);
        result.map_err(|trouble| trouble.at(self.place(member)))
    }

    fn take_if(&mut self, member: &'static str, wanted: u8) -> Result<bool, ReadError> {
        let result = self.scanner.take_if(wanted);
        result.map_err(|trouble| trouble.at(self.place(member)))
    }

    fn place(&self, member: &str) -> Place {
        Place {
            member: member.to_owned(),
            index: None,
            position: self.base.saturating_add(self.scanner.position()),
        }
    }
}

fn wrong(why: &str) -> ReadError {
    ReadError::WrongFormat {
        expected: "JSON backup of Waggle",
        why: why.to_owned(),
    }
}
