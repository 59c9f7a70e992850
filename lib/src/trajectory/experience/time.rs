//! Seconds since 1970 as ISO 8601.

/// The time in UTC, whole seconds; `None`: no year that is written with four digits.
pub(super) fn iso(seconds: f64) -> Option<String> {
    if !(0.0..253_402_300_800.0).contains(&seconds) {
        return None;
    }
    let seconds = seconds as i64;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // the proleptic Gregorian calendar, years from March
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

#[cfg(test)]
mod tests {
    use super::iso;

    #[test]
    fn tells_times() {
        assert_eq!(iso(0.0).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(iso(1_709_251_199.9).as_deref(), Some("2024-02-29T23:59:59Z"));
        assert_eq!(iso(-1.0), None);
    }
}
