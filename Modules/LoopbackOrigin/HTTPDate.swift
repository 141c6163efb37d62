#if Origin
  #if canImport(FoundationEssentials)
    internal import FoundationEssentials
  #else
    internal import Foundation
  #endif

  /// Dates of HTTP (RFC 9110 §5.6.7). Written out because `FoundationEssentials` has no formatter for them.
  enum HTTPDate {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`; fractions of a second are cut off.
    static func string(_ date: Date) -> String {
      let seconds = wholeSeconds(date)
      let day = floorDivide(seconds, 86_400)
      let time = seconds - day * 86_400
      let (year, month, dayOfMonth) = civil(day)
      let weekday = days[((day + 4) % 7 + 7) % 7]
      let clock = [time / 3600, time / 60 % 60, time % 60].map { pad($0, 2) }.joined(separator: ":")
      return "\(weekday), \(pad(dayOfMonth, 2)) \(months[month - 1]) \(pad(year, 4)) \(clock) GMT"
    }

    /// The date of an IMF-fixdate; nil for anything else. The two obsolete forms are not read.
    static func date(_ text: String) -> Date? {
      let parts = text.split(separator: " ")
      guard parts.count == 6, parts[0].count == 4, parts[0].last == ",", parts[5] == "GMT",
        days.contains(String(parts[0].dropLast())),
        let day = number(parts[1], 2), let month = months.firstIndex(of: String(parts[2])), let year = number(parts[3], 4)
      else { return nil }
      let clock = parts[4].split(separator: ":", omittingEmptySubsequences: false).map { number($0, 2) }
      guard clock.count == 3, let hour = clock[0], let minute = clock[1], let second = clock[2], hour < 24, minute < 60,
        second <= 60
      else { return nil }
      let daysSince1970 = daysFromCivil(year, month + 1, day)
      guard civil(daysSince1970) == (year, month + 1, day) else { return nil }
      return Date(timeIntervalSince1970: Double(daysSince1970 * 86_400 + hour * 3600 + minute * 60 + second))
    }

    /// Seconds since 1970, as a field can tell them.
    static func wholeSeconds(_ date: Date) -> Int { Int(date.timeIntervalSince1970.rounded(.down)) }

    private static func number(_ text: Substring, _ digits: Int) -> Int? {
      text.count == digits && text.utf8.allSatisfy { (48...57).contains($0) } ? Int(text) : nil
    }

    private static func pad(_ value: Int, _ width: Int) -> String {
      let digits = String(value)
      return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    private static func floorDivide(_ a: Int, _ b: Int) -> Int { a >= 0 ? a / b : -((b - 1 - a) / b) }

    /// Proleptic Gregorian date of a day count since 1970-01-01: years begin in March, so that the leap day is the last of its
    /// year.
    private static func civil(_ day: Int) -> (year: Int, month: Int, day: Int) {
      let shifted = day + 719_468
      let era = floorDivide(shifted, 146_097)
      let ofEra = shifted - era * 146_097
      let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
      let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
      let shiftedMonth = (5 * ofYear + 2) / 153
      let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
      return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, ofYear - (153 * shiftedMonth + 2) / 5 + 1)
    }

    private static func daysFromCivil(_ year: Int, _ month: Int, _ day: Int) -> Int {
      let shiftedYear = month <= 2 ? year - 1 : year
      let era = floorDivide(shiftedYear, 400)
      let yearOfEra = shiftedYear - era * 400
      let ofYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
      return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + ofYear - 719_468
    }
  }
#endif
