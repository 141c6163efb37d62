/// A date and time of the proleptic Gregorian calendar, in UTC.
struct CivilTime: Equatable {
  var year: Int64
  /// The month, from 1 to 12.
  var month: Int64
  /// The day, from 1 to 31.
  var day: Int64
  var hour: Int64
  var minute: Int64
  /// The second, from 0 to 60. A leap second is the first second of the next minute.
  var second: Int64

  init(year: Int64, month: Int64, day: Int64, hour: Int64, minute: Int64, second: Int64) {
    (self.year, self.month, self.day) = (year, month, day)
    (self.hour, self.minute, self.second) = (hour, minute, second)
  }

  /// Calculates with eras of 400 years that start on March 1. The leap day is then the last of its year, so months have fixed
  /// offsets.
  init(_ timestamp: Timestamp) {
    let total = timestamp.seconds
    let secondOfDay = (total % 86_400 + 86_400) % 86_400
    let days = (total - secondOfDay) / 86_400 + 719_468
    let era = (days >= 0 ? days : days - 146_096) / 146_097
    let dayOfEra = days - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    self.init(
      year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month: month, day: dayOfYear - (153 * shifted + 2) / 5 + 1,
      hour: secondOfDay / 3_600, minute: secondOfDay / 60 % 60, second: secondOfDay % 60)
  }

  /// The number of days since 1970-01-01.
  var days: Int64 {
    let shiftedYear = month <= 2 ? year - 1 : year
    let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
    let yearOfEra = shiftedYear - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  /// The day of the week, where 0 is Sunday.
  var weekday: Int64 { ((days + 4) % 7 + 7) % 7 }

  var timestamp: Timestamp { Timestamp(seconds: days * 86_400 + hour * 3_600 + minute * 60 + second) }

  /// Whether the date and the time of day are valid.
  var exists: Bool {
    guard (1...12).contains(month), (1...daysInMonth).contains(day) else { return false }
    return (0...23).contains(hour) && (0...59).contains(minute) && (0...60).contains(second)
  }

  /// The time of day, such as `08:49:37`.
  var clock: String { "\(Self.padded(hour, 2)):\(Self.padded(minute, 2)):\(Self.padded(second, 2))" }

  static func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
  }

  private var daysInMonth: Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}
