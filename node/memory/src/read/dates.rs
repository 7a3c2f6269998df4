//! Dates and clock times as comparison keys and as periods, resolved against the moment of speaking.
//!
//! Ambiguous dates (3.5.2027) are left alone: they stay text. All in UTC; the caller shifts for other zones.

use crate::read::list::list;
use jiff::ToSpan;
use jiff::civil::Date;

use super::numbers::quantity;
use super::token::{Token, TokenKind};
use super::words::{MONTHS, WEEKDAYS, is_in};
use crate::time::Millis;

/// Which way a date without a year, or a weekday, is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// What is to come: plans, deadlines.
    Forward,
    /// What has been: "we chose it in March".
    Backward,
}

/// A date, period, weekday or clock time that starts at a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct When {
    /// The comparison key.
    pub(crate) key: String,
    /// How many tokens it takes.
    pub(crate) taken: usize,
    /// First and last day of it, if it stands for days of the calendar.
    pub(crate) days: Option<(Date, Date)>,
}

impl When {
    fn days(prefix: &str, taken: usize, first: Date, last: Date) -> Self {
        Self {
            key: format!("d:{prefix}{first}..{last}"),
            taken,
            days: Some((first, last)),
        }
    }

    fn day(taken: usize, day: Date) -> Self {
        Self::days("", taken, day, day)
    }
}

/// The day that holds `at`, in UTC.
pub(crate) fn day_of(at: Millis) -> Option<Date> {
    let moment = jiff::Timestamp::from_millisecond(at.0).ok()?;
    Some(jiff::tz::Offset::UTC.to_datetime(moment).date())
}

/// The first moment of `day`, in UTC.
pub(crate) fn start_of(day: Date) -> Option<Millis> {
    let epoch = Date::constant(1970, 1, 1);
    let days = day.since((jiff::Unit::Day, epoch)).ok()?.get_days();
    Some(Millis(i64::from(days) * Millis::DAY))
}

fn add_days(day: Date, days: i64) -> Option<Date> {
    day.checked_add(days.days()).ok()
}

fn add_months(day: Date, months: i64) -> Option<Date> {
    day.checked_add(months.months()).ok()
}

fn year_days(year: i16) -> Option<(Date, Date)> {
    Some((Date::new(year, 1, 1).ok()?, Date::new(year, 12, 31).ok()?))
}

fn quarter_days(year: i16, quarter: i8) -> Option<(Date, Date)> {
    let first = Date::new(year, quarter * 3 - 2, 1).ok()?;
    Some((first, add_months(first, 2)?.last_of_month()))
}

/// The calendar period named by `unit`, `offset` of them away from the one that holds `today`.
pub(crate) fn calendar_period(today: Date, unit: &str, offset: i64) -> Option<(Date, Date)> {
    match unit {
        "day" => add_days(today, offset).map(|d| (d, d)),
        "week" => {
            let monday = add_days(today, -i64::from(today.weekday().to_monday_zero_offset()))?;
            let first = add_days(monday, offset * 7)?;
            Some((first, add_days(first, 6)?))
        }
        "month" => {
            let first = add_months(today.first_of_month(), offset)?;
            Some((first, first.last_of_month()))
        }
        "quarter" => {
            let month = (today.month() - 1) / 3 * 3 + 1;
            let first = add_months(Date::new(today.year(), month, 1).ok()?, offset * 3)?;
            Some((first, add_months(first, 2)?.last_of_month()))
        }
        "year" => year_days(today.year().checked_add(i16::try_from(offset).ok()?)?),
        _ => None,
    }
}

fn word(tokens: &[Token], at: usize) -> &str {
    tokens
        .get(at)
        .filter(|t| t.kind == TokenKind::Word)
        .map_or("", |t| t.lower.as_str())
}

fn before(tokens: &[Token], at: usize) -> &str {
    at.checked_sub(1).map_or("", |i| word(tokens, i))
}

fn month_number(tokens: &[Token], at: usize) -> Option<i8> {
    let token = tokens.get(at).filter(|t| t.kind == TokenKind::Word)?;
    let lower = token.lower.as_str();
    let place = MONTHS.iter().position(|m| {
        *m == lower || (lower.len() >= 3 && m.starts_with(lower) && (lower.len() == 3 || lower == "sept"))
    })?;
    let whole = MONTHS.get(place).is_some_and(|m| *m == lower) && lower != "may" && lower != "march";
    let capital = token.text.starts_with(char::is_uppercase);
    let led = is_in(
        list!("in by since until till on for of to before after from through during at next last this every"),
        before(tokens, at),
    );
    let numbered = day_number(tokens, at + 1).is_some()
        || year_number(tokens, at + 1).is_some()
        || (at > 0 && day_number(tokens, at - 1).is_some());
    let spoken = whole
        || numbered
        || led
        || (capital && lower == "march" && at > 0)
        || (capital && lower == "may" && is_in(list!("is are and"), before(tokens, at)));
    if spoken && (capital || whole || numbered || led) {
        i8::try_from(place + 1).ok()
    } else {
        None
    }
}

fn day_number(tokens: &[Token], at: usize) -> Option<i8> {
    let token = tokens.get(at).filter(|t| t.kind == TokenKind::Number)?;
    let digits = token.lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ending = token.lower.get(digits.len()..).unwrap_or_default();
    if digits.len() > 2 || !matches!(ending, "" | "st" | "nd" | "rd" | "th") {
        return None;
    }
    digits.parse::<i8>().ok().filter(|d| (1..=31).contains(d))
}

fn year_number(tokens: &[Token], at: usize) -> Option<i16> {
    let token = tokens
        .get(at)
        .filter(|t| t.kind == TokenKind::Number && t.lower.len() == 4)?;
    token.lower.parse::<i16>().ok().filter(|y| (1900..=2199).contains(y))
}

fn year_after(tokens: &[Token], at: usize) -> (Option<i16>, usize) {
    if let Some(year) = year_number(tokens, at) {
        return (Some(year), 1);
    }
    if tokens.get(at).is_some_and(|t| t.is(","))
        && let Some(year) = year_number(tokens, at + 1)
    {
        return (Some(year), 2);
    }
    (None, 0)
}

/// The date, period or clock time that starts at token `at`, if one does.
pub(crate) fn when(tokens: &[Token], at: usize, today: Date, direction: Direction) -> Option<When> {
    let token = tokens.get(at)?;
    match token.kind {
        TokenKind::Number => number_first(tokens, at, token, today, direction),
        TokenKind::Word => word_first(tokens, at, today, direction),
        _ => None,
    }
}

fn number_first(tokens: &[Token], at: usize, token: &Token, today: Date, direction: Direction) -> Option<When> {
    if let Some(clock) = clock(tokens, at, token) {
        return Some(clock);
    }
    if token.lower.len() == 10
        && token.lower.as_bytes().get(4) == Some(&b'-')
        && let Ok(day) = token.lower.parse::<Date>()
    {
        return Some(When::day(1, day));
    }
    // "15 March 2027", "15th of March"
    if let Some(day) = day_number(tokens, at) {
        let of = usize::from(word(tokens, at + 1) == "of");
        if let Some(month) = month_number(tokens, at + 1 + of) {
            let (year, more) = year_after(tokens, at + 2 + of);
            return Some(When {
                taken: 2 + of + more,
                ..month_day(month, day, year, today, direction)?
            });
        }
    }
    if let Some(year) = year_number(tokens, at)
        && is_in(
            list!("in since by until till from of before after during through year early late mid"),
            before(tokens, at),
        )
        && quantity(tokens, at).is_none_or(|q| !q.has_unit)
    {
        let (first, last) = year_days(year)?;
        return Some(When::days("", 1, first, last));
    }
    // "3 days ago"
    let amount = quantity(tokens, at).filter(|q| q.has_unit)?;
    ago(tokens, at, amount.taken, today)
}

fn ago(tokens: &[Token], at: usize, taken: usize, today: Date) -> Option<When> {
    if word(tokens, at + taken) != "ago" {
        return None;
    }
    let unit = word(tokens, at + taken - 1).trim_end_matches('s');
    let count: i64 = tokens.get(at).and_then(|t| {
        t.lower.parse().ok().or_else(|| {
            quantity(tokens, at)?
                .key
                .split([':', ' '])
                .nth(1)?
                .parse::<i64>()
                .ok()
                .map(|v| match unit {
                    "day" => v / Millis::DAY,
                    "week" => v / (7 * Millis::DAY),
                    "year" => v / 12,
                    _ => v,
                })
        })
    })?;
    let day = match unit {
        "day" => add_days(today, count.checked_neg()?)?,
        "week" => add_days(today, count.checked_mul(-7)?)?,
        "month" => add_months(today, count.checked_neg()?)?,
        "year" => add_months(today, count.checked_mul(-12)?)?,
        _ => return None,
    };
    Some(When::day(taken + 1, day))
}

fn month_day(month: i8, day: i8, year: Option<i16>, today: Date, direction: Direction) -> Option<When> {
    if let Some(year) = year {
        return Some(When::day(0, Date::new(year, month, day).ok()?));
    }
    let this_year = Date::new(today.year(), month, day);
    let date = match (this_year, direction) {
        (Ok(date), Direction::Forward) if date >= today => date,
        (Ok(date), Direction::Backward) if date <= today => date,
        (_, Direction::Forward) => Date::new(today.year().checked_add(1)?, month, day).ok()?,
        (_, Direction::Backward) => Date::new(today.year().checked_sub(1)?, month, day).ok()?,
    };
    Some(When::day(0, date))
}

fn word_first(tokens: &[Token], at: usize, today: Date, direction: Direction) -> Option<When> {
    let lower = word(tokens, at);
    let relative = match lower {
        "today" | "tonight" => Some(0),
        "tomorrow" => Some(1),
        "yesterday" => Some(-1),
        _ => None,
    };
    if let Some(days) = relative {
        return Some(When::day(1, add_days(today, days)?));
    }
    if let ("noon" | "midnight", prior) = (lower, before(tokens, at))
        && is_in(list!("at by before after until from to is"), prior)
    {
        let key = if lower == "noon" { "t:12:00" } else { "t:00:00" };
        return Some(When {
            key: key.to_owned(),
            taken: 1,
            days: None,
        });
    }
    if let Some(offset) = match lower {
        "next" => Some(1),
        "last" => Some(-1),
        "this" => Some(0),
        _ => None,
    } {
        let unit = word(tokens, at + 1);
        if matches!(unit, "week" | "month" | "quarter" | "year") {
            let (first, last) = calendar_period(today, unit, offset)?;
            return Some(When::days("", 2, first, last));
        }
        let direction = if offset < 0 {
            Direction::Backward
        } else {
            Direction::Forward
        };
        if weekday(unit).is_some() || month_number(tokens, at + 1).is_some() {
            // "Next Friday" is the one of next week, not the coming one.
            if let (Some((day, false)), 1) = (weekday(unit), offset) {
                let (monday, _) = calendar_period(today, "week", 1)?;
                return Some(When::day(2, add_days(monday, i64::try_from(day).ok()?)?));
            }
            let inner = word_first(tokens, at + 1, today, direction)?;
            // "Next March" may be this year's or the year after: it equals no other wording.
            let key = if offset > 0 {
                format!("next {}", inner.key)
            } else {
                inner.key
            };
            return Some(When {
                key,
                taken: inner.taken + 1,
                days: inner.days,
            });
        }
        return None;
    }
    if let Some((day, plural)) = weekday(lower) {
        let recurring = plural || is_in(list!("every each"), before(tokens, at));
        if recurring {
            let name = WEEKDAYS.get(day)?;
            return Some(When {
                key: format!("wd:{name}"),
                taken: 1,
                days: None,
            });
        }
        let now = i64::from(today.weekday().to_monday_zero_offset());
        let ahead = (i64::try_from(day).ok()? - now).rem_euclid(7);
        let offset = match direction {
            Direction::Forward if ahead == 0 => 7,
            Direction::Forward => ahead,
            Direction::Backward if ahead == 0 => -7,
            Direction::Backward => ahead - 7,
        };
        return Some(When::day(1, add_days(today, offset)?));
    }
    if lower.len() == 2
        && let Some(quarter) = lower
            .strip_prefix('q')
            .and_then(|d| d.parse::<i8>().ok())
            .filter(|q| (1..=4).contains(q))
    {
        let (year, more) = year_after(tokens, at + 1);
        let current = (today.month() - 1) / 3 + 1;
        let year = match (year, direction) {
            (Some(year), _) => year,
            (None, Direction::Forward) if quarter < current => today.year().checked_add(1)?,
            (None, Direction::Backward) if quarter > current => today.year().checked_sub(1)?,
            _ => today.year(),
        };
        let (first, last) = quarter_days(year, quarter)?;
        return Some(When::days("", 1 + more, first, last));
    }
    if let Some(month) = month_number(tokens, at) {
        if let Some(day) = day_number(tokens, at + 1) {
            let (year, more) = year_after(tokens, at + 2);
            let date = month_day(month, day, year, today, direction)?;
            return Some(When {
                taken: 2 + more,
                ..date
            });
        }
        let (year, more) = year_after(tokens, at + 1);
        let year = match (year, direction) {
            (Some(year), _) => year,
            (None, Direction::Forward) if month < today.month() => today.year().checked_add(1)?,
            (None, Direction::Backward) if month > today.month() => today.year().checked_sub(1)?,
            _ => today.year(),
        };
        let first = Date::new(year, month, 1).ok()?;
        return Some(When::days("", 1 + more, first, first.last_of_month()));
    }
    let amount = quantity(tokens, at).filter(|q| q.has_unit)?;
    ago(tokens, at, amount.taken, today)
}

/// The weekday of that name, and whether it stands in the plural ("Fridays": every one of them).
fn weekday(lower: &str) -> Option<(usize, bool)> {
    let single = lower.strip_suffix('s').unwrap_or(lower);
    if let Some(day) = WEEKDAYS.iter().position(|d| *d == lower || *d == single) {
        return Some((day, lower.ends_with('s')));
    }
    None
}

/// `17:00`, `5pm`, `5:30 PM`.
fn clock(tokens: &[Token], at: usize, token: &Token) -> Option<When> {
    let raw = token.lower.as_str();
    if raw.len() > 8 {
        return None;
    }
    let digits = raw.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ending = raw.get(digits.len()..)?;
    let (half, taken) = match ending {
        "am" | "pm" => (ending, 1),
        "" => match word(tokens, at + 1) {
            half @ ("am" | "pm") => (half, 2),
            "a.m." => ("am", 2),
            "p.m." => ("pm", 2),
            _ => ("", 1),
        },
        _ => return None,
    };
    let (hour, minute) = match digits.split_once(':') {
        Some(parts) => parts,
        None if half.is_empty() => return None,
        None => (digits, "00"),
    };
    let (hour, minutes) = (hour.parse::<u8>().ok()?, minute.parse::<u8>().ok()?);
    if minute.len() != 2 || minutes > 59 || hour > 24 || (!half.is_empty() && !(1..=12).contains(&hour)) {
        return None;
    }
    let hour = match half {
        "am" => hour % 12,
        "pm" => hour % 12 + 12,
        _ => hour,
    };
    Some(When {
        key: format!("t:{hour:02}:{minutes:02}"),
        taken,
        days: None,
    })
}
