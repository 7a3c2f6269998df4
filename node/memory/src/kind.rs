//! The closed vocabularies of the graph. Names in text form are those of the tool surface; numbers are those of the
//! persisted format and never change meaning (I-43).

use std::fmt;
use std::str::FromStr;

/// A word that is not in a closed vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    /// What was given.
    pub given: String,
    /// What would have been accepted.
    pub allowed: Vec<&'static str>,
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not one of {}",
            self.given.escape_debug(),
            self.allowed.join(", ")
        )
    }
}

impl std::error::Error for UnknownWord {}

macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $number:literal $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant = $number),* }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word that agents and exports use.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// The number of the persisted format.
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// Reads the number of the persisted format.
            pub const fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)*
                    other => Err(UnknownWord {
                        given: other.chars().take(80).collect(),
                        allowed: vec![$($word),*],
                    }),
                }
            }
        }
    };
}

vocabulary! {
    /// What sort of memory it is.
    Kind {
        /// A statement about the world.
        Fact = 1 "fact",
        /// A named person, team, organisation, product, file or identifier.
        Entity = 2 "entity",
        /// A definition, requirement or constraint.
        Concept = 3 "concept",
        /// What somebody likes, wants as a rule, avoids.
        Preference = 4 "preference",
        /// A choice made, planned or dropped.
        Decision = 5 "decision",
        /// Open until answered.
        Question = 6 "question",
        /// Anything else, hedged or to do.
        Note = 7 "note",
    }
}

impl Kind {
    /// Gate G2: whether a memory of one kind may be merged into one of the other.
    pub const fn may_merge_with(self, other: Self) -> bool {
        use Kind::{Concept, Decision, Entity, Fact, Note, Preference};
        self as u8 == other as u8
            || matches!(
                (self, other),
                (Entity | Concept | Note, Entity | Concept | Note)
                    | (Fact | Decision | Preference, Note)
                    | (Note, Fact | Decision | Preference)
            )
    }
}

vocabulary! {
    /// How far a memory or link can be trusted, by how it came to be.
    Confidence {
        /// Somebody said exactly this as a memory.
        Explicit = 1 "explicit",
        /// Extraction found it, plainly asserted or named in the text.
        Inferred = 2 "inferred",
        /// Hedged, conditional, suggested, or resting on one shared word.
        Weak = 3 "weak",
    }
}

vocabulary! {
    /// What a link says about its two ends, read from source to target.
    Relationship {
        /// Is about, mentions.
        RelatesTo = 1 "relates_to",
        /// Cannot both hold; symmetric.
        Contradicts = 2 "contradicts",
        /// Needs, or holds because of.
        DependsOn = 3 "depends_on",
        /// Belongs to.
        PartOf = 4 "part_of",
        /// Replaces.
        Updates = 5 "updates",
        /// Is a more specific form of, or was made from.
        DerivedFrom = 6 "derived_from",
        /// Says nearly the same; symmetric.
        SimilarTo = 7 "similar_to",
        /// Is a reflection about.
        ReflectsOn = 8 "reflects_on",
    }
}

impl Relationship {
    /// How much relevance flows along it, in thousandths (memory semantics, table of relationships).
    pub const fn strength_thousandths(self) -> u32 {
        match self {
            Self::Contradicts => 1000,
            Self::Updates => 950,
            Self::DependsOn => 850,
            Self::DerivedFrom | Self::ReflectsOn => 750,
            Self::PartOf => 700,
            Self::RelatesTo => 500,
            Self::SimilarTo => 300,
        }
    }

    /// Whether (a, b) and (b, a) are the same link.
    pub const fn is_symmetric(self) -> bool {
        matches!(self, Self::Contradicts | Self::SimilarTo)
    }

    /// Whether such a link is a conflict that somebody can resolve.
    pub const fn is_conflict(self) -> bool {
        matches!(self, Self::Contradicts | Self::Updates)
    }
}

vocabulary! {
    /// Which part of the system made a link.
    Origin {
        /// store_edge, Studio, REST.
        Manual = 1 "manual",
        /// observe_conversation.
        Observe = 2 "observe",
        /// decompose_and_store.
        Decompose = 3 "decompose",
        /// A transcript hand-off.
        Handoff = 4 "handoff",
        /// Conflict detection.
        Conflict = 5 "conflict",
        /// A deliberate merge.
        Canonicalize = 6 "canonicalize",
        /// An import.
        Import = 7 "import",
        /// A remote site.
        Federation = 8 "federation",
    }
}

vocabulary! {
    /// Who spoke a turn.
    Role {
        /// The person.
        User = 1 "user",
        /// The agent.
        Assistant = 2 "assistant",
        /// Instructions around the conversation.
        System = 3 "system",
        /// A tool's output.
        Tool = 4 "tool",
    }
}

vocabulary! {
    /// How a statement is meant (gate G9): a difference blocks every merge.
    Modality {
        /// Plainly said to hold.
        Asserted = 1 "asserted",
        /// Meant to come: will, in Q3.
        Planned = 2 "planned",
        /// Maybe, probably, a suggestion.
        Hedged = 3 "hedged",
        /// Holds only if something else does.
        Conditional = 4 "conditional",
        /// Held once: used to.
        Past = 5 "past",
        /// Asked, not said.
        Question = 6 "question",
    }
}
