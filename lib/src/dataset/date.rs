//! Dates of rows: ISO 8601 texts, epoch seconds, epoch milliseconds.

use serde_json::Value;

/// Milliseconds since 1970 of a date as rows state it.
///
/// ISO text with an offset, `Z` or nothing (then UTC), a date alone (its first moment), a number of seconds or
/// milliseconds (parquet: also micro- and nanoseconds), or such a number as text. `None`: it is none of these.
pub(super) fn millis(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => {
            let number = number.as_i64().or_else(|| number.as_f64().map(|float| float as i64))?;
            Some(epoch(number))
        }
        Value::String(text) => {
            let text = text.trim();
            text.parse().map(epoch).ok().or_else(|| iso(text))
        }
        _ => None,
    }
}

/// Seconds stay below 1e11 until the year 5138; milliseconds have been above since 1973, and so on.
fn epoch(number: i64) -> i64 {
    match number.unsigned_abs() {
        0..100_000_000_000 => number * 1000,
        100_000_000_000..100_000_000_000_000 => number,
        100_000_000_000_000..100_000_000_000_000_000 => number.div_euclid(1000),
        _ => number.div_euclid(1_000_000),
    }
}

fn iso(text: &str) -> Option<i64> {
    if !text.is_ascii() {
        return None;
    }
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.split('-');
    let mut next = |digits: usize| digits_of(parts.next()?, digits);
    let (year, month, day) = (next(4)?, next(2)?, next(2)?);
    if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    let midnight = days_since_1970(year, month, day) * 86_400_000;
    match rest.strip_prefix(['T', 't', ' ']) {
        Some(time) => Some(midnight + time_of_day(time)?),
        None => rest.is_empty().then_some(midnight),
    }
}

/// `hh:mm[:ss[.fraction]]` and an offset, in milliseconds.
fn time_of_day(text: &str) -> Option<i64> {
    let zone = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (clock, offset) = text.split_at(zone);
    let mut parts = clock.trim_end().split(':');
    let (hour, minute) = (digits_of(parts.next()?, 2)?, digits_of(parts.next()?, 2)?);
    let (second, fraction) = match parts.next().map(|s| s.split_once('.').unwrap_or((s, ""))) {
        Some((second, fraction)) => (digits_of(second, 2)?, fraction),
        None => (0, ""),
    };
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let millis = format!("{fraction:0<3}").get(..3)?.parse::<i64>().ok()?;
    Some(((hour * 60 + minute - minutes_of(offset)?) * 60 + second) * 1000 + millis)
}

/// The minutes of an offset: `Z`, nothing, `+02:00`, `+0200` or `+02`.
fn minutes_of(offset: &str) -> Option<i64> {
    let sign = match offset.as_bytes().first() {
        None | Some(b'Z' | b'z') => return (offset.len() < 2).then_some(0),
        Some(b'-') => -1,
        _ => 1,
    };
    let digits = offset[1..].replace(':', "");
    let hours = digits_of(digits.get(..2)?, 2)?;
    let minutes = if digits.len() == 2 { 0 } else { digits_of(&digits[2..], 2)? };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

fn digits_of(text: &str, count: usize) -> Option<i64> {
    (text.len() == count && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days between 1970-01-01 and a date of the Gregorian calendar, years counted from March.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_every_spelling_of_one_moment() {
        let expected = Some(1_609_298_073_000);
        for value in [
            json!(1_609_298_073_000_i64),
            json!(1_609_298_073),
            json!("1609298073"),
            json!("2020-12-30T03:14:33Z"),
            json!("2020-12-30 03:14:33"),
            json!("2020-12-30T05:14:33+02:00"),
            json!("2020-12-29T22:14:33.000-0500"),
        ] {
            assert_eq!(millis(&value), expected, "{value}");
        }
        assert_eq!(millis(&json!("2000-02-29")), Some(951_782_400_000));
        assert_eq!(millis(&json!("1969-12-31T23:59:59.5Z")), Some(-500));
    }

    #[test]
    fn refuses_what_is_no_date() {
        for text in [
            "",
            "soon",
            "2020-13-01",
            "2021-02-29",
            "2020-01-01T25:00:00Z",
            "2020-01-01Tx",
            "2020-1-1",
            "2020-01-01T00:00:00Q",
            "é020-01-01T0",
        ] {
            assert_eq!(millis(&json!(text)), None, "{text:?}");
        }
        assert_eq!(millis(&json!(null)), None);
    }

    #[test]
    fn days_count_on() {
        let mut day = days_since_1970(1896, 1, 1);
        for year in 1896..2105 {
            for month in 1..=12 {
                for date in 1..=days_in(year, month) {
                    assert_eq!(days_since_1970(year, month, date), day, "{year}-{month}-{date}");
                    day += 1;
                }
            }
        }
    }
}
