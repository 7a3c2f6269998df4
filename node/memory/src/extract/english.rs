//! Which clauses the rules may look at: English ones that are more than an assistant's promise.

use crate::read::list::{WordList, list};
use crate::read::modality::has_phrase;
use crate::read::term::{Term, TermKind};
use crate::read::words::is_in;

/// Words of other languages that English does not have; one of them in lower case and the clause is not English.
const FOREIGN: WordList = WordList::new(
    "der das und wir ist nicht für mit ein eine einen wird benutzen verwenden haben sind auch \
     nous vous je les des une est pour avec dans pas sont avons sur qui \
     el los las una para con está usamos nosotros porque pero \
     wij het een voor zijn niet gebruiken van \
     il gli che della sono noi usiamo \
     vi och är för med ikke og som på \
     não uma nós para usamos em com \
     jest nie dla się oraz",
);
/// Foreign words that are English too, or parts of names: they need company.
const HOMOGRAPHS: WordList =
    WordList::new("con com il van das el los las est het pas sur og som em una je des der par");

/// English by its words: no letters of other scripts, no function words of other languages.
pub(crate) fn is_english(terms: &[Term]) -> bool {
    let mut doubtful = 0;
    for term in terms {
        if term.kind == TermKind::Code {
            continue;
        }
        if term.lower.chars().any(|c| c.is_alphabetic() && u32::from(c) > 0x24F) {
            return false;
        }
        let lower_case = !term.capital || term.first;
        if term.kind != TermKind::Technology && lower_case && is_in(FOREIGN, &term.lower) {
            if is_in(HOMOGRAPHS, &term.lower) {
                doubtful += 1;
            } else {
                return false;
            }
        }
    }
    doubtful < 2
}

/// "I'll remember that ...": an assistant's promise, not a statement.
pub(crate) fn is_promise(terms: &[Term]) -> bool {
    const PROMISES: &[&str] = &[
        "i will remember",
        "i will note",
        "i will track",
        "i will keep",
        "i will make a note",
        "i have noted",
        "i have saved",
        "i have recorded",
        "i will save",
        "i will store",
        "i will record",
        "i am noting",
        "i will bear",
        "i noted",
        "i saved",
        "i will make sure",
        "i will be sure",
        "i have stored",
        "i have updated",
        "i will update",
        "i can remember",
        "i will now remember",
        "i will also remember",
        "i shall remember",
        "i have remembered",
        "i have made a note",
    ];
    PROMISES.iter().any(|p| has_phrase(terms, p))
        || terms
            .first()
            .is_some_and(|t| t.is_one_of(list!("noted saved recorded remembered")))
}
