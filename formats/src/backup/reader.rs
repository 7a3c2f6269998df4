//! Reads a backup, one record after the other.

use std::io::Read;

use serde::de::DeserializeOwned;
use waggle_memory::record::Record;
use waggle_memory::scope::Scope;
use waggle_memory::time::Millis;

use super::{FORMAT, Header, SECTIONS, ScopeShape, Summary, VERSION};
use crate::check::check;
use crate::counts::Counts;
use crate::error::{Dangling, Place, ReadError};
use crate::json::{self, Text, hex};
use crate::limits::{HEADER_BYTES_MAX, RECORD_BYTES_MAX};
use crate::order::{Misplaced, Order};
use crate::scanner::{Scanner, Trouble};
use crate::shape::link::LinkShape;
use crate::shape::memory::{MemoryShape, RedirectShape, TombstoneShape};
use crate::shape::transcript::{SessionShape, TurnShape};
use crate::signature::SignatureShape;

/// Links without an end that an error lists.
const DANGLING_LISTED_MAX: usize = 100;

/// How to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Leave out links without an end instead of refusing the file.
    pub allow_dangling: bool,
}

/// Gives the records of a backup. They are to be believed only after the last one: then the hash is known to fit. Read
/// a file with [`verify`] before anything is done with its records.
pub struct Reader<R> {
    scanner: Scanner<R>,
    options: Options,
    header: Header,
    order: Order,
    section: usize,
    /// Records of the section that were read.
    index: u64,
    dangling: Vec<Dangling>,
    dangling_count: u64,
    summary: Option<Summary>,
    /// What was wrong once stays wrong.
    failed: bool,
}

/// Reads the whole file and keeps nothing of it.
pub fn verify(input: impl Read, options: Options) -> Result<(Header, Summary), ReadError> {
    let mut reader = Reader::open(input, options)?;
    while reader.next_record()?.is_some() {}
    let header = reader.header.clone();
    match reader.summary {
        Some(summary) => Ok((header, summary)),
        None => Err(reader.malformed("signature", "expected the end of the file".to_owned())),
    }
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    pub fn open(input: R, options: Options) -> Result<Self, ReadError> {
        let mut reader = Self {
            scanner: Scanner::new(input),
            options,
            header: Header {
                tenant_id: String::new(),
                exported_at: Millis(0),
                read_at: String::new(),
                scope: Scope::default(),
                embedding_model_id: String::new(),
                rules_version: 0,
            },
            order: Order::default(),
            section: 0,
            index: 0,
            dangling: Vec::new(),
            dangling_count: 0,
            summary: None,
            failed: false,
        };
        reader.read_format()?;
        reader.header.tenant_id = reader.member("tenant_id")?;
        reader.header.exported_at = reader.member::<Text<Millis>>("exported_at")?.0;
        reader.header.read_at = reader.member("read_at")?;
        let scope: ScopeShape = reader.member("scope")?;
        reader.header.scope = Scope {
            project: scope.project,
            agent_id: scope.agent_id,
            session_id: scope.session_id,
        };
        reader.header.embedding_model_id = reader.member("embedding_model_id")?;
        reader.header.rules_version = reader.member("rules_version")?;
        reader.open_section()?;
        Ok(reader)
    }

    /// What stands before the records.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// What the file holds; after the last record.
    pub const fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The next record; None when the file ended and its hash fits.
    pub fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        if self.failed {
            return Err(self.malformed("file", "it was refused before".to_owned()));
        }
        let next = self.advance();
        self.failed = next.is_err();
        next
    }

    fn advance(&mut self) -> Result<Option<Record>, ReadError> {
        while self.summary.is_none() {
            let Some(member) = SECTIONS.get(self.section) else {
                self.read_end()?;
                break;
            };
            match self.read_record(member)? {
                Step::Record(record) => return Ok(Some(record)),
                Step::LeftOut => {}
                Step::SectionEnds => {
                    self.section += 1;
                    if self.section < SECTIONS.len() {
                        self.open_section()?;
                    }
                }
            }
        }
        Ok(None)
    }

    fn read_record(&mut self, member: &'static str) -> Result<Step, ReadError> {
        if self.take_if(member, b']')? {
            self.take(member, b',', "a comma after the list")?;
            if member == "edges" && !self.dangling.is_empty() && !self.options.allow_dangling {
                return Err(ReadError::Dangling(std::mem::take(&mut self.dangling)));
            }
            return Ok(Step::SectionEnds);
        }
        if self.index > 0 {
            self.take(member, b',', "a comma between records")?;
        }
        let place = self.place(member, Some(self.index));
        let json = self
            .scanner
            .value(RECORD_BYTES_MAX, "bytes in one record")
            .map_err(|trouble| trouble.at(place.clone()))?;
        let record = parse_record(self.section, json).and_then(|record| check(&record).map(|()| record));
        let record = record.map_err(|why| ReadError::Malformed {
            place: place.clone(),
            why,
        })?;
        self.index += 1;
        match self.order.take(&record) {
            Ok(()) => Ok(Step::Record(record)),
            Err(Misplaced::OutOfOrder) => Err(ReadError::Malformed {
                place,
                why: "the record is there twice, or records are not sorted by id".to_owned(),
            }),
            Err(Misplaced::TooMany { what, limit }) => Err(ReadError::TooLarge { place, what, limit }),
            Err(Misplaced::Dangling(dangling)) => {
                self.dangling_count += 1;
                if self.dangling.len() < DANGLING_LISTED_MAX {
                    self.dangling.push(dangling);
                }
                Ok(Step::LeftOut)
            }
        }
    }

    fn read_format(&mut self) -> Result<(), ReadError> {
        let wrong = |why: &str| ReadError::WrongFormat {
            expected: FORMAT,
            why: why.to_owned(),
        };
        if !self.take_if("format", b'{')? {
            return Err(wrong("it does not begin with an object"));
        }
        let first: Result<String, ReadError> = self.member("format");
        match first {
            Ok(format) if format == FORMAT => {}
            Err(error @ (ReadError::Io(_) | ReadError::TooLarge { .. })) => return Err(error),
            _ => return Err(wrong("its first member is not format with that name")),
        }
        let version: u64 = self.member("format_version")?;
        if version != u64::from(VERSION) {
            return Err(ReadError::WrongVersion {
                found: version.to_string(),
                readable: "1",
            });
        }
        Ok(())
    }

    fn read_end(&mut self) -> Result<(), ReadError> {
        let stated: Counts = self.member("counts")?;
        let mut counted = self.order.counts;
        counted.edges += self.dangling_count;
        if stated != counted {
            return Err(self.malformed("counts", "they are not the counts of the records before".to_owned()));
        }
        // The blanks before the name count, the name does not.
        self.scanner
            .peek()
            .map_err(|trouble| trouble.at(self.place("content_hash", None)))?;
        let content_hash = format!("sha256:{}", hex(&self.scanner.hash()));
        let stated: String = self.member("content_hash")?;
        if stated != content_hash {
            return Err(ReadError::Hash {
                what: "the file".to_owned(),
            });
        }
        self.key("signature")?;
        let shape: Option<SignatureShape> = self.value("signature")?;
        let signature = match shape {
            None => None,
            Some(shape) => Some(shape.read().ok_or_else(|| {
                self.malformed(
                    "signature",
                    "expected ed25519 with 64 and 128 hexadecimal digits".to_owned(),
                )
            })?),
        };
        self.take("signature", b'}', "the end of the object")?;
        let rest = self
            .scanner
            .peek()
            .map_err(|trouble| trouble.at(self.place("end", None)))?;
        if rest.is_some() {
            return Err(self.malformed("end", "expected nothing after the object".to_owned()));
        }
        self.summary = Some(Summary {
            counts: self.order.counts,
            content_hash,
            signature,
            bytes: self.scanner.position(),
            dangling_dropped: self.dangling_count,
        });
        Ok(())
    }

    fn open_section(&mut self) -> Result<(), ReadError> {
        let Some(member) = SECTIONS.get(self.section) else {
            return Ok(());
        };
        self.index = 0;
        self.key(member)?;
        self.take(member, b'[', "a list")
    }

    /// One member with its comma.
    fn member<T: DeserializeOwned>(&mut self, member: &'static str) -> Result<T, ReadError> {
        self.key(member)?;
        let value = self.value(member)?;
        self.take(member, b',', "a comma after the member")?;
        Ok(value)
    }

    fn key(&mut self, member: &'static str) -> Result<(), ReadError> {
        let found: String = self.value(member)?;
        if found != member {
            return Err(self.malformed(member, format!("expected the member \"{member}\" here")));
        }
        self.take(member, b':', "a colon after the name")
    }

    fn value<T: DeserializeOwned>(&mut self, member: &'static str) -> Result<T, ReadError> {
        let place = self.place(member, None);
        let json = self
            .scanner
            .value(HEADER_BYTES_MAX, "bytes in one member")
            .map_err(|trouble| trouble.at(place.clone()))?;
        json::parse(json).map_err(|why| ReadError::Malformed { place, why })
    }

    fn take(&mut self, member: &'static str, wanted: u8, what: &'static str) -> Result<(), ReadError> {
        let result: Result<(), Trouble> = self.scanner.take(wanted, what);
        result.map_err(|trouble| trouble.at(self.place(member, None)))
    }

    fn take_if(&mut self, member: &'static str, wanted: u8) -> Result<bool, ReadError> {
        let result = self.scanner.take_if(wanted);
        result.map_err(|trouble| trouble.at(self.place(member, None)))
    }

    fn place(&self, member: &str, index: Option<u64>) -> Place {
        Place {
            member: member.to_owned(),
            index,
            position: self.scanner.position(),
        }
    }

    fn malformed(&self, member: &str, why: String) -> ReadError {
        ReadError::Malformed {
            place: self.place(member, None),
            why,
        }
    }
}

enum Step {
    Record(Record),
    LeftOut,
    SectionEnds,
}

fn parse_record(section: usize, json: &[u8]) -> Result<Record, String> {
    Ok(match section {
        0 => Record::Session(json::parse::<SessionShape>(json)?.into()),
        1 => {
            let (turn, message) = json::parse::<TurnShape>(json)?.read();
            Record::Turn(Box::new(turn), message)
        }
        2 => Record::Memory(Box::new(json::parse::<MemoryShape>(json)?.into())),
        3 => Record::Link(Box::new(json::parse::<LinkShape>(json)?.into())),
        4 => Record::Redirect(json::parse::<RedirectShape>(json)?.into()),
        _ => {
            let (id, tombstone) = json::parse::<TombstoneShape>(json)?.read();
            Record::Tombstone(id, tombstone)
        }
    })
}
