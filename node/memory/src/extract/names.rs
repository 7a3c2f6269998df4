//! Entities: file paths and code identifiers wherever they stand, people and teams where a role introduces them.

use crate::read::clause::Clause;
use crate::read::list::list;
use crate::read::term::{Term, TermKind};
use crate::read::words::is_in;

/// Something with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entity {
    pub(crate) name: String,
    pub(crate) span: (usize, usize),
    pub(crate) path: bool,
}

/// Last parts of identifiers in mixed case that people use in code.
const SUFFIXES: &[&str] = &[
    "Handler",
    "Service",
    "Controller",
    "Manager",
    "Factory",
    "Client",
    "Server",
    "Provider",
    "Repository",
    "Model",
    "View",
    "Error",
    "Exception",
    "Config",
    "Builder",
    "Parser",
    "Router",
    "Store",
    "Context",
    "Component",
    "Module",
    "Adapter",
    "Helper",
    "Util",
    "Utils",
    "Request",
    "Response",
    "Middleware",
    "Interceptor",
    "Worker",
    "Queue",
    "Test",
    "Loader",
    "Writer",
    "Reader",
    "Uploader",
    "Scheduler",
    "Job",
    "Task",
    "Processor",
    "Validator",
    "Serializer",
];

/// Paths and identifiers among `terms`.
pub(crate) fn code(terms: &[Term]) -> Vec<Entity> {
    terms
        .iter()
        .filter_map(|term| {
            let name = term.shown.trim_matches(['`', '"', '“', '”']);
            let path = term.kind == TermKind::Code && is_file(name);
            let fits = path || (matches!(term.kind, TermKind::Name | TermKind::Code) && is_identifier(name));
            let quotes = term.shown.find(name).unwrap_or(0);
            // Normalised text may be longer or shorter than what stands there.
            let as_said = term.end - term.start == term.shown.len();
            let start = term.start + quotes;
            let span = if as_said {
                (start, start + name.len())
            } else {
                (term.start, term.end)
            };
            (fits && name.len() <= 200).then(|| Entity {
                name: name.to_owned(),
                span,
                path,
            })
        })
        .collect()
}

fn is_file(name: &str) -> bool {
    let url = name.contains("://") || name.contains('@');
    let spaced = name.contains(char::is_whitespace);
    !url && !spaced
        && !name.starts_with('-')
        && (name.contains('/') || name.contains('.'))
        && name.chars().any(char::is_alphabetic)
        && name
            .rsplit(['/', '.'])
            .next()
            .is_some_and(|e| !e.is_empty() || name.ends_with('/'))
}

fn is_identifier(name: &str) -> bool {
    if !name.is_ascii() || name.len() < 4 || name.contains(char::is_whitespace) {
        return false;
    }
    let bare = name.trim_end_matches("()");
    let word = bare
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':');
    let uppers = bare.bytes().filter(u8::is_ascii_uppercase).count();
    let lowers = bare.bytes().filter(u8::is_ascii_lowercase).count();
    let snake = bare.contains('_') && !bare.starts_with('_') && uppers + lowers > 2;
    let call = bare.len() < name.len() && lowers > 0;
    let camel = uppers >= 2 && lowers > uppers && SUFFIXES.iter().any(|s| bare.ends_with(s) && bare.len() > s.len());
    let humps = uppers >= 3
        && lowers > uppers
        && bare.ends_with(|c: char| c.is_ascii_lowercase())
        && bare.starts_with(|c: char| c.is_ascii_uppercase());
    let scoped = bare.contains("::");
    word && (snake || call || camel || humps || scoped)
}

/// People, teams and organisations that a clause introduces by a role ("leads", "is our").
pub(crate) fn introduced(terms: &[Term], clause: &Clause) -> Vec<Entity> {
    let role = is_in(
        list!("lead own manage head maintain oversee supervise found"),
        clause.verb,
    ) && clause.outer.is_none();
    let rest = terms.get(clause.group.1..).unwrap_or_default();
    let ours = clause.verb == "be"
        && rest.first().is_some_and(|t| t.is_one_of(list!("our my the")))
        && rest.iter().any(|t| t.is_one_of(list!("lead leader manager owner cto ceo supplier vendor designer engineer client customer partner head director founder")));
    if !(role || ours) || clause.imperative {
        return Vec::new();
    }
    let subject = terms.get(clause.subject.0..clause.subject.1).unwrap_or_default();
    let mut found = Vec::new();
    // A name is all of the subject: "Alice Johnson", not "The new manager".
    let whole = subject.iter().all(|t| {
        t.capital
            && matches!(t.kind, TermKind::Name | TermKind::Word)
            && !t.is_one_of(list!("i we the a an our my this that"))
    });
    if whole {
        found.extend(entity(subject));
    }
    let mut run: Vec<Term> = Vec::new();
    for term in rest.iter().chain(std::iter::once(&stop())) {
        if term.kind == TermKind::Name && term.capital {
            run.push(term.clone());
        } else {
            found.extend(entity(&run));
            run.clear();
        }
    }
    found
}

fn entity(run: &[Term]) -> Option<Entity> {
    let (first, last) = (run.first()?, run.last()?);
    let name = run.iter().map(|t| t.shown.as_str()).collect::<Vec<_>>().join(" ");
    let fits = (2..=200).contains(&name.len());
    fits.then_some(Entity {
        name,
        span: (first.start, last.end),
        path: false,
    })
}

fn stop() -> Term {
    Term {
        text: String::new(),
        lower: String::new(),
        shown: String::new(),
        kind: TermKind::Stop,
        start: 0,
        end: 0,
        capital: false,
        verb: None,
        days: None,
        first: false,
    }
}
