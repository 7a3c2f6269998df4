//! Where a walk through a long answer goes on. A cursor is self-contained: sealed under the cluster secret, bound to
//! tenant, credential, tool and arguments, and good on any gateway for 15 minutes.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;
use waggle_config::limits::{CURSOR_AGE_MAX, CURSOR_BYTES_MAX};
use waggle_memory::time::Millis;
use xxhash_rust::xxh3::xxh3_64;

use crate::fault::Fault;
use crate::seal::keyed_hash;

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 1 + 8 + 8 + 8 + 2 + 2 + 1;
const TAG_BYTES: usize = 16;
/// More than this and the text would pass [`CURSOR_BYTES_MAX`].
const SHOWN_MAX: usize = (CURSOR_BYTES_MAX * 3 / 4 - HEADER_BYTES - TAG_BYTES) / 4 - 1;

/// What a cursor belongs to. None of it stands in the cursor; the seal covers it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) key_id: &'a str,
    pub(crate) tool: &'a str,
    /// Of all arguments but the cursor itself.
    pub(crate) arguments: u64,
}

/// How far the walk is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    /// When the first page was answered: relative times mean the same on every page.
    pub(crate) started: Millis,
    /// The state that the walk reads, as the node named it; 0 where a tool has none.
    pub(crate) read_stamp: i64,
    /// What the first answer found and no page has shown yet: later pages bring no more than that.
    pub(crate) left: Left,
    pub(crate) position: Position,
}

/// How many nodes and turns of an answer are still to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) nodes: u16,
    pub(crate) turns: u16,
}

/// What earlier pages showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// Exactly these items, by [`item_hash`].
    Shown(Vec<u32>),
    /// So many in the order of the answer: once there are too many to name.
    Offset(u32),
    /// Everything of the lists before this one, and of this one everything up to this id.
    Behind(u8, [u8; 16]),
}

impl Default for Position {
    fn default() -> Self {
        Self::Shown(Vec::new())
    }
}

impl Position {
    /// The position after showing `more` items as well; it names at most `named_max`.
    pub(crate) fn after(&self, more: &[u32], named_max: usize) -> Self {
        match self {
            Self::Shown(shown) if shown.len() + more.len() <= SHOWN_MAX.min(named_max) => {
                Self::Shown(shown.iter().chain(more).copied().collect())
            }
            Self::Shown(shown) => Self::Offset(u32::try_from(shown.len() + more.len()).unwrap_or(u32::MAX)),
            Self::Offset(offset) => Self::Offset(offset.saturating_add(u32::try_from(more.len()).unwrap_or(u32::MAX))),
            Self::Behind(..) => self.clone(),
        }
    }

    /// For the node, which leaves these out.
    pub(crate) fn shown(&self) -> &[u32] {
        match self {
            Self::Shown(shown) => shown,
            Self::Offset(_) | Self::Behind(..) => &[],
        }
    }
}

/// Names an item in [`Position::Shown`]. Memories and turns of a query have the hash that nodes use as well.
pub(crate) fn item_hash(identity: &[u8]) -> u32 {
    (xxh3_64(identity) >> 32) as u32
}

/// Seals and opens cursors.
#[derive(Clone, Debug)]
pub(crate) struct Cursors {
    key: [u8; 32],
}

impl Cursors {
    pub(crate) fn new(cluster_secret: &[u8]) -> Self {
        Self {
            key: keyed_hash(cluster_secret, &[b"waggle cursor v1"]),
        }
    }

    pub(crate) fn seal(&self, walk: &Walk, binding: Binding<'_>, now: Millis) -> String {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + TAG_BYTES + 4 * walk.position.shown().len());
        bytes.push(VERSION);
        bytes.extend(now.0.to_be_bytes());
        bytes.extend(walk.started.0.to_be_bytes());
        bytes.extend(walk.read_stamp.to_be_bytes());
        bytes.extend(walk.left.nodes.to_be_bytes());
        bytes.extend(walk.left.turns.to_be_bytes());
        match &walk.position {
            Position::Shown(shown) => {
                bytes.push(0);
                shown.iter().for_each(|hash| bytes.extend(hash.to_be_bytes()));
            }
            Position::Offset(offset) => {
                bytes.push(1);
                bytes.extend(offset.to_be_bytes());
            }
            Position::Behind(list, id) => {
                bytes.push(2);
                bytes.push(*list);
                bytes.extend(id);
            }
        }
        let tag = self.tag(&bytes, binding);
        bytes.extend(tag);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(crate) fn open(&self, text: &str, binding: Binding<'_>, now: Millis) -> Result<Walk, Fault> {
        let refused = || {
            Fault::new(
                "invalid_cursor",
                "the cursor is not one of this call: it is bound to the key, the tool and all other arguments; \
                 repeat the call without cursor to start again",
            )
            .with_field("cursor")
        };
        if text.len() > CURSOR_BYTES_MAX {
            return Err(refused());
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
        let at = bytes.len().checked_sub(TAG_BYTES).ok_or_else(refused)?;
        let (body, tag) = bytes.split_at(at);
        if !bool::from(self.tag(body, binding).ct_eq(tag)) {
            return Err(refused());
        }
        let (issued, walk) = read(body).ok_or_else(refused)?;
        let age = now.0.saturating_sub(issued.0);
        if u128::try_from(age).unwrap_or(0) > CURSOR_AGE_MAX.as_millis() {
            return Err(Fault::new(
                "invalid_cursor",
                "the cursor is older than 15 minutes; repeat the call without cursor to start again",
            )
            .with_field("cursor"));
        }
        Ok(walk)
    }

    fn tag(&self, body: &[u8], binding: Binding<'_>) -> [u8; TAG_BYTES] {
        let hash = keyed_hash(
            &self.key,
            &[
                body,
                binding.tenant.as_bytes(),
                binding.key_id.as_bytes(),
                binding.tool.as_bytes(),
                &binding.arguments.to_be_bytes(),
            ],
        );
        let mut tag = [0; TAG_BYTES];
        tag.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
        tag
    }
}

fn read(mut body: &[u8]) -> Option<(Millis, Walk)> {
    fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
        let (head, rest) = from.split_first_chunk::<N>()?;
        *from = rest;
        Some(*head)
    }
    let [version, ..] = take::<1>(&mut body)?;
    if version != VERSION {
        return None;
    }
    let issued = Millis(i64::from_be_bytes(take(&mut body)?));
    let started = Millis(i64::from_be_bytes(take(&mut body)?));
    let read_stamp = i64::from_be_bytes(take(&mut body)?);
    let left = Left {
        nodes: u16::from_be_bytes(take(&mut body)?),
        turns: u16::from_be_bytes(take(&mut body)?),
    };
    let position = match take::<1>(&mut body)? {
        [0] if body.len().is_multiple_of(4) => {
            let mut shown = Vec::with_capacity(body.len() / 4);
            while !body.is_empty() {
                shown.push(u32::from_be_bytes(take(&mut body)?));
            }
            Position::Shown(shown)
        }
        [1] if body.len() == 4 => Position::Offset(u32::from_be_bytes(take(&mut body)?)),
        [2] if body.len() == 17 => {
            let [list] = take(&mut body)?;
            Position::Behind(list, take(&mut body)?)
        }
        _ => return None,
    };
    Some((
        issued,
        Walk {
            started,
            read_stamp,
            left,
            position,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_700_000_000_000);

    fn binding() -> Binding<'static> {
        Binding {
            tenant: "acme",
            key_id: "k1",
            tool: "query_graph",
            arguments: 7,
        }
    }

    fn walk(position: Position) -> Walk {
        Walk {
            started: NOW,
            read_stamp: 42,
            left: Left { nodes: 3, turns: 1 },
            position,
        }
    }

    #[test]
    fn a_cursor_opens_only_where_it_belongs_and_untouched() {
        let cursors = Cursors::new(&[1; 32]);
        let sealed = cursors.seal(&walk(Position::Shown(vec![1, 2, 3])), binding(), NOW);
        assert_eq!(
            cursors.open(&sealed, binding(), NOW),
            Ok(walk(Position::Shown(vec![1, 2, 3])))
        );
        let others = [
            Binding {
                tenant: "other",
                ..binding()
            },
            Binding {
                key_id: "k2",
                ..binding()
            },
            Binding {
                tool: "prime_context",
                ..binding()
            },
            Binding {
                arguments: 8,
                ..binding()
            },
        ];
        for other in others {
            assert_eq!(
                cursors.open(&sealed, other, NOW).map_err(|fault| fault.code),
                Err("invalid_cursor"),
                "{other:?}"
            );
        }
        assert!(
            Cursors::new(&[2; 32]).open(&sealed, binding(), NOW).is_err(),
            "another cluster"
        );
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).expect("ASCII");
            assert!(cursors.open(&changed, binding(), NOW).is_err(), "changed at {at}");
        }
        for text in [
            "",
            "x",
            "!!!",
            &sealed[1..],
            &sealed[..sealed.len() - 1],
            &"A".repeat(3000),
        ] {
            assert!(cursors.open(text, binding(), NOW).is_err(), "{text}");
        }
    }

    #[test]
    fn a_place_in_a_list_comes_back() {
        let cursors = Cursors::new(&[1; 32]);
        let position = Position::Behind(1, [7; 16]);
        let sealed = cursors.seal(&walk(position.clone()), binding(), NOW);
        assert_eq!(cursors.open(&sealed, binding(), NOW), Ok(walk(position)));
    }

    #[test]
    fn a_cursor_lives_fifteen_minutes() {
        let cursors = Cursors::new(&[1; 32]);
        let sealed = cursors.seal(&walk(Position::Offset(9)), binding(), NOW);
        assert!(cursors.open(&sealed, binding(), NOW.plus(15 * 60 * 1000)).is_ok());
        assert!(cursors.open(&sealed, binding(), NOW.plus(15 * 60 * 1000 + 1)).is_err());
    }

    #[test]
    fn a_long_walk_counts_instead_of_naming_and_stays_below_two_kibibytes() {
        let cursors = Cursors::new(&[1; 32]);
        let mut position = Position::default();
        for step in 0..900u32 {
            position = position.after(&[step], usize::MAX);
            assert!(cursors.seal(&walk(position.clone()), binding(), NOW).len() <= CURSOR_BYTES_MAX);
        }
        assert_eq!(position, Position::Offset(900));
    }
}
