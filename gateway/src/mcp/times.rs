//! Points in time as agents write them: RFC 3339, a date, or a few words relative to now. Calendar units are those of
//! UTC, and weeks start on Monday.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use waggle_memory::time::Millis;

const EXAMPLES: &str = "write it as 2026-07-28T09:30:00Z, 2026-07-28, 3d (ago), today, yesterday, this week, last week, \
                        this month, last month or recently";

/// The instant that `text` names; the error is the end of a sentence about the field.
pub(crate) fn parse(text: &str, now: Millis) -> Result<Millis, String> {
    let text = text.trim();
    let wrong = || format!("is not a time; {EXAMPLES}");
    let found = match text.to_ascii_lowercase().as_str() {
        "now" => Some(now),
        "recently" => Some(now.plus(-14 * Millis::DAY)),
        words => ago(words, now).or_else(|| calendar(words, now)),
    };
    if let Some(found) = found {
        return Ok(found);
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(Millis(instant.as_millisecond()));
    }
    // A date alone is the start of that day; jiff would also read a date out of a longer text.
    let date: Date = if text.len() == 10 {
        text.parse().map_err(|_| wrong())?
    } else {
        return Err(wrong());
    };
    start_of(date).ok_or_else(wrong)
}

/// `<n>[smhdw]`.
fn ago(text: &str, now: Millis) -> Option<Millis> {
    let unit = match text.bytes().last()? {
        b's' => Millis::SECOND,
        b'm' => 60 * Millis::SECOND,
        b'h' => 3_600 * Millis::SECOND,
        b'd' => Millis::DAY,
        b'w' => 7 * Millis::DAY,
        _ => return None,
    };
    let digits = text.get(..text.len() - 1)?;
    if digits.is_empty() || digits.len() > 6 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: i64 = digits.parse().ok()?;
    Some(now.plus(-(count * unit)))
}

fn calendar(words: &str, now: Millis) -> Option<Millis> {
    let today = TimeZone::UTC
        .to_datetime(Timestamp::from_millisecond(now.0).ok()?)
        .date();
    let monday = today
        .checked_sub(Span::new().days(i64::from(today.weekday().to_monday_zero_offset())))
        .ok()?;
    let first = today.first_of_month();
    let date = match words {
        "today" => today,
        "yesterday" => today.yesterday().ok()?,
        "this week" => monday,
        "last week" => monday.checked_sub(Span::new().days(7)).ok()?,
        "this month" => first,
        "last month" => first.checked_sub(Span::new().months(1)).ok()?,
        _ => return None,
    };
    start_of(date)
}

fn start_of(date: Date) -> Option<Millis> {
    let midnight: DateTime = date.to_datetime(jiff::civil::Time::midnight());
    let instant = TimeZone::UTC.to_timestamp(midnight).ok()?;
    Some(Millis(instant.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        // A Wednesday.
        let now = Millis(
            "2026-07-29T10:20:30.123Z"
                .parse::<Timestamp>()
                .expect("now")
                .as_millisecond(),
        );
        let got = parse(text, now).map_or_else(|why| format!("error: {why}"), |at| at.to_string());
        assert!(got.starts_with(expect), "{text}: {got}");
    }

    #[test]
    fn all_forms_of_a_time_are_read() {
        check("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z");
        check("2026-01-02T03:04:05.678+02:00", "2026-01-02T01:04:05.678Z");
        check("2026-01-02", "2026-01-02T00:00:00.000Z");
        check("30s", "2026-07-29T10:20:00.123Z");
        check("5m", "2026-07-29T10:15:30.123Z");
        check("2h", "2026-07-29T08:20:30.123Z");
        check("3d", "2026-07-26T10:20:30.123Z");
        check("1w", "2026-07-22T10:20:30.123Z");
        check("Today", "2026-07-29T00:00:00.000Z");
        check("yesterday", "2026-07-28T00:00:00.000Z");
        check("this week", "2026-07-27T00:00:00.000Z");
        check("last week", "2026-07-20T00:00:00.000Z");
        check("this month", "2026-07-01T00:00:00.000Z");
        check("last month", "2026-06-01T00:00:00.000Z");
        check("recently", "2026-07-15T10:20:30.123Z");
        for wrong in [
            "garbage",
            "2026-13-01",
            "2026-02-30",
            "",
            "5y",
            "2026-01-02T03:04:05",
            "12:00",
            "d",
            "-3d",
        ] {
            check(wrong, "error: is not a time; write it as 2026-07-28T09:30:00Z");
        }
    }
}
