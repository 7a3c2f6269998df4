//! From what a client's file says to what it shall say. Pure.

use super::clients::Client;
use super::malformed::Malformed;
use super::target::{Target, Way};

/// How a client stands to a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No sign of the program.
    NotInstalled,
    /// Installed, without an entry of ours.
    Absent,
    /// Has our entry, with this address.
    Connected,
    /// Has an entry of our name that says something else.
    Differs,
    /// The file cannot be read as what it should be.
    Unreadable,
    /// Nothing can be seen from here: it is set up inside the program.
    ByHand,
}

impl State {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::NotInstalled => "not installed",
            Self::Absent => "absent",
            Self::Connected => "connected",
            Self::Differs => "differs",
            Self::Unreadable => "unreadable",
            Self::ByHand => "by hand",
        }
    }
}

/// The state of a file that exists, whichever way the client was connected.
pub(crate) fn state(client: &Client, target: &Target, text: &str) -> Result<State, Malformed> {
    let mut found = false;
    for way in [Way::Reference, Way::KeyInFile, Way::Bridge] {
        let target = Target { way, ..target.clone() };
        let entry = client.entry(&target, text);
        if entry.holds_in(text)? {
            return Ok(State::Connected);
        }
        found |= entry.place.read(text)?.is_some();
    }
    Ok(if found { State::Differs } else { State::Absent })
}

/// The text with our entry; the same text when it says so already.
pub(crate) fn connect(client: &Client, target: &Target, text: &str) -> Result<String, Malformed> {
    let entry = client.entry(target, text);
    if entry.holds_in(text)? {
        return Ok(text.to_owned());
    }
    // The other form of the entry may have brought more than the entry itself, such as a question.
    let way = if target.way == Way::Reference {
        Way::KeyInFile
    } else {
        Way::Reference
    };
    let other = client.entry(&Target { way, ..target.clone() }, text);
    let cleared = match &other.item {
        Some(_) if entry.item.is_none() => other.remove(text, Some(text))?,
        _ => text.to_owned(),
    };
    entry.write(&cleared)
}

/// What disconnecting makes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// There is no entry of ours.
    Nothing,
    /// The file shall say this.
    Text(String),
    /// The file was made by connecting and holds nothing else.
    Delete,
}

/// Takes our entry out. If the file is, byte for byte, what connecting made of one of its backups (newest first), that
/// backup is the answer; else the entry alone is cut out.
pub(crate) fn disconnect(
    client: &Client,
    target: &Target,
    text: &str,
    backups: &[String],
) -> Result<Removal, Malformed> {
    let mut entry = client.entry(target, text);
    let Some(found) = entry.place.read(text)? else {
        return Ok(Removal::Nothing);
    };
    entry.value = found;
    // A backup of a disconnect holds the entry itself and says nothing about the time before it.
    let earlier: Vec<&String> = backups
        .iter()
        .filter(|before| matches!(entry.place.read(before), Ok(None)))
        .collect();
    if let Some(before) = earlier
        .iter()
        .find(|before| remade(&entry, before).as_deref() == Some(text))
    {
        return Ok(Removal::Text((*before).clone()));
    }
    if remade(&entry, "").as_deref() == Some(text) {
        return Ok(Removal::Delete);
    }
    let before = earlier.first().map(|before| before.as_str());
    Ok(Removal::Text(entry.remove(text, before)?))
}

/// What connecting would have made of a text.
fn remade(entry: &super::entry::Entry, before: &str) -> Option<String> {
    entry.write(before).ok()
}
