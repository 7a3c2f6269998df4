//! The vocabularies of the schema are those of the domain, word by word and number by number.

use waggle_memory::kind;

use super::generated as pb;

macro_rules! check_vocabulary {
    ($name:ident, $prefix:literal) => {
        for value in kind::$name::ALL {
            let persisted = pb::$name::try_from(i32::from(value.number())).expect("a number of the schema");
            assert_eq!(
                persisted.as_str_name(),
                format!("{}_{}", $prefix, value.word().to_uppercase())
            );
        }
    };
}

#[test]
fn schema_and_domain_use_the_same_numbers() {
    check_vocabulary!(Kind, "KIND");
    check_vocabulary!(Confidence, "CONFIDENCE");
    check_vocabulary!(Relationship, "RELATIONSHIP");
    check_vocabulary!(Origin, "ORIGIN");
    check_vocabulary!(Role, "ROLE");
    check_vocabulary!(Modality, "MODALITY");
    for number in 1..=5 {
        let reason = waggle_memory::memory::ChangeReason::from_number(number).expect("a reason");
        let persisted = pb::ChangeReason::try_from(i32::from(number)).expect("a number of the schema");
        assert_eq!(
            persisted.as_str_name(),
            format!("CHANGE_REASON_{}", reason.word().to_uppercase())
        );
    }
    for number in 1..=4 {
        let reason = waggle_memory::command::DedupReason::from_number(number).expect("a reason");
        let persisted = pb::DedupReason::try_from(i32::from(number)).expect("a number of the schema");
        assert_eq!(
            persisted.as_str_name(),
            format!("DEDUP_REASON_{}", reason.word().to_uppercase())
        );
    }
}
