use super::*;

/// Terms in order, repetitions included; marks and second spellings show by their first character.
fn terms(text: &str) -> String {
    let mut all: Vec<String> = Vec::new();
    analyze(text, &Context::said_on(None), &Limits::DOCUMENT, &mut |term, _| {
        all.push(term.to_owned())
    });
    all.join(" ")
}

fn check(text: &str, expected: &str) {
    assert_eq!(terms(text), expected, "{text}");
}

#[test]
fn english_words_are_stemmed_and_common_ones_left_out() {
    check("We decided to use the databases", "decid use databas");
    check("The children bought two books", "child buy 2 book");
    check(
        "Caroline's painting isn't Melanie’s",
        "carolin =caroline paint not melani =melanie",
    );
    check("I can't, won't and shouldn't", "not not not");
    check("", "");
    check("?!… —", "");
}

#[test]
fn identifiers_are_found_whole_and_in_parts() {
    check("WG-4031", "wg4031 wg 4031");
    check(
        "user_name userName user-name",
        "username user name username user name username user name",
    );
    check("parseHTTPRequest", "parsehttprequest pars http request");
    check(
        "src/waggle/server.py",
        "src/waggle/server.py server.py src waggl server py",
    );
    check("C:\\jobs\\main.rs", "c:/jobs/main.rs main.rs c job main rs");
    check("v3.10.2 and 3.10", "3.10 3.10.2 3.10");
    check("std::sync::Arc", "std::sync::arc std sync arc");
    check(
        "https://staging.example.com/v2",
        "https://staging.example.com/v2 staging.example.com https stage exampl com v2 2",
    );
    check("C++, C# and F#", "c++ c# f#");
    check("U.S.A.", "usa u s");
    check("ops@example.com", "ops@example.com op exampl com");
    check("well-known", "wellknown well know");
    check("utf8 x86_64", "utf8 x8664 x86 64");
}

#[test]
fn accents_are_folded_and_kept() {
    check("café Café", "cafe =café cafe =café");
    check("Cafe\u{301}", "cafe =café");
    check("Straße GROẞ", "strass =straße gross =groß");
    check("Zürich", "zurich =zürich");
    check("für die Produktion", "fur =für die produkt =produktion");
    check("Ελλάδα", "ελλαδα =ελλάδα");
    check("йод", "йод");
}

#[test]
fn scripts_without_spaces_are_read_by_pairs() {
    check("数据库", "数 据 数据 库 据库");
    check(
        "データベースはPostgreSQLを使います。",
        "デ ー デー タ ータ ベ タベ ー ベー ス ース は スは postgresql postgr sql を 使 を使 い 使い ま いま す ます",
    );
    check("ข้อมูล", "ข ้ ข้ อ ้อ ม อม ู มู ล ูล");
    check("데이터", "데 이 데이 터 이터");
    check("ＰｏｓｔｇｒｅＳＱＬ　１２", "postgresql postgr sql 12");
    check("ﾃﾞｰﾀ", "デ ー デー タ ータ");
    check("नमस्ते दुनिया", "नमस्ते दुनिया");
}

#[test]
fn dates_have_one_spelling() {
    check("8 May 2023", "8 @05-08 may 2023");
    check("the 8th of May", "8 @05-08 may");
    check("May 8th", "may 8 @05-08");
    check("2023-05-08", "2023-05-08 @05-08 may 2023");
}

#[test]
fn relative_times_are_resolved_against_the_day_they_were_said() {
    let monday = calendar::Day::of_date(2023, 5, 8);
    for (text, expected) in [
        ("yesterday", "@05-07 may 2023 yesterday"),
        ("last year", "last 2022 year"),
        ("last Friday", "last @05-05 may 2023 friday"),
        ("next month", "next june 2023 month"),
        ("two months ago", "2 month march 2023 ago"),
        ("a week ago", "week may 2023 ago"),
    ] {
        let mut all: Vec<String> = Vec::new();
        analyze(
            text,
            &Context::said_on(Some(monday)),
            &Limits::DOCUMENT,
            &mut |term, _| all.push(term.to_owned()),
        );
        assert_eq!(all.join(" "), expected, "{text}");
    }
}

#[test]
fn a_query_says_what_it_asks_for() {
    let texts = |query: &str| {
        query_terms(query)
            .terms
            .into_iter()
            .map(|term| term.text)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(texts("When did Caroline paint?"), "carolin =caroline paint");
    assert_eq!(texts("how many books"), "mani =many book =books");
    assert_eq!(texts("数据"), "数据");
    assert_eq!(texts("库"), "库");
    assert_eq!(query_terms("what is it?").words, 0);
    assert!(query_terms("what is forbidden").analysis.negated);
    assert!(query_terms("we don't do that").analysis.negated);
    assert!(!query_terms("what do we do").analysis.negated);
}

#[test]
fn a_single_word_of_a_mebibyte_is_read_in_linear_time() {
    let letters = "a".repeat(1 << 20);
    assert_eq!(terms(&letters).len(), 128);
    for unit in ["a-", "aB", "é", "数", "e\u{301}", "\u{301}", "a'", "1.", "a/", "A", "ﷺ"] {
        let text = unit.repeat((1 << 20) / unit.len());
        let mut count = 0;
        analyze(&text, &Context::said_on(None), &Limits::DOCUMENT, &mut |term, _| {
            count += 1;
            assert!(term.len() <= Limits::DOCUMENT.term_bytes + 1);
        });
        assert!(count <= Limits::DOCUMENT.terms, "{unit}");
    }
}
