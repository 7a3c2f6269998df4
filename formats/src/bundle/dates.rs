//! Times as the two audiences read them.

use waggle_memory::time::Millis;

use super::Audience;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// `2026-03-01` for agents, `1 March 2026` for people; both in UTC.
pub(super) fn day(at: Millis, audience: Audience) -> String {
    let full = at.to_string();
    let Some((date, _)) = full.split_once('T') else {
        return full;
    };
    if audience == Audience::Llm {
        return date.to_owned();
    }
    let mut parts = date.rsplitn(3, '-');
    let day = parts.next().and_then(|d| d.parse::<u8>().ok());
    let month = parts.next().and_then(|m| m.parse::<usize>().ok());
    let name = month.and_then(|m| MONTHS.get(m.checked_sub(1)?));
    match (day, name, parts.next()) {
        (Some(day), Some(month), Some(year)) => format!("{day} {month} {year}"),
        _ => date.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_dates_in_full() {
        assert_eq!(day(Millis(0), Audience::Human), "1 January 1970");
        assert_eq!(day(Millis(0), Audience::Llm), "1970-01-01");
        assert_eq!(day(Millis(i64::MAX), Audience::Human), Millis(i64::MAX).to_string());
    }
}
