//! Dates as text: ISO 8601 for messages, the HTTP form for headers. Pure; no time zones but UTC.
//!
//! Source of the day arithmetic: Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.

const DAY_MS: i64 = 86_400_000;
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Year, month and day of a day counted from 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn clock(milliseconds: i64) -> (i64, i64, i64, i64) {
    let in_day = milliseconds.rem_euclid(DAY_MS);
    (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1_000 % 60, in_day % 1_000)
}

/// Milliseconds since 1970 as ISO 8601.
pub(crate) fn instant(milliseconds: i64) -> String {
    let (year, month, day) = civil(milliseconds.div_euclid(DAY_MS));
    let (hour, minute, second, millisecond) = clock(milliseconds);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

/// Milliseconds since 1970 as RFC 9110 writes dates.
pub(crate) fn http_date(milliseconds: i64) -> String {
    let days = milliseconds.div_euclid(DAY_MS);
    let (year, month, day) = civil(days);
    let (hour, minute, second, _) = clock(milliseconds);
    let weekday = usize::try_from(days.rem_euclid(7)).map_or("", |at| WEEKDAYS[at]);
    let month = usize::try_from(month - 1).map_or("", |at| MONTHS[at]);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_around_leaps_are_right() {
        assert_eq!(instant(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(instant(951_827_696_789), "2000-02-29T12:34:56.789Z");
        assert_eq!(instant(-1), "1969-12-31T23:59:59.999Z");
        // The date of RFC 9110, 5.6.7.
        assert_eq!(http_date(784_111_777_000), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
