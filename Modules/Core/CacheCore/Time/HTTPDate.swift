/// A date in an HTTP field (RFC 9110 §5.6.7), with a resolution of one second.
///
/// The initializer reads the preferred form (`Sun, 06 Nov 1994 08:49:37 GMT`), the form of RFC 850 (`Sunday, 06-Nov-94 08:49:37
/// GMT`) and that of C's `asctime` (`Sun Nov  6 08:49:37 1994`). It is as lenient as RFC 9111 §4.2 permits: it accepts any case,
/// `UTC` for `GMT`, surrounding blanks, and a wrong day of the week. It rejects everything else, in particular other time zones.
///
/// ```swift
/// HTTPDate("Sun, 06 Nov 1994 08:49:37 GMT", receivedAt: now)?.timestamp.seconds  // 784111777
/// ```
public struct HTTPDate: Hashable, Comparable, Sendable {
  /// The point in time. Dates beyond the year 2262 saturate.
  public let timestamp: Timestamp

  /// Creates a date from a point in time, rounded down to a second.
  public init(_ timestamp: Timestamp) { self.timestamp = Timestamp(seconds: timestamp.seconds) }

  /// Creates a date from the text of a field. Returns `nil` if the text is not a date.
  ///
  /// - Parameters:
  ///   - text: The value of a field, in any of the three forms of RFC 9110 §5.6.7.
  ///   - now: The time at which the field arrived. It determines the century of a two-digit year, which is at most 50 years after
  ///     `now` (RFC 9110 §5.6.7).
  public init?(_ text: String, receivedAt now: Timestamp) {
    self.init(text, now, acceptsUTC: true)
  }

  /// Creates the date of an `Expires` field. Returns `nil` for a zone other than `GMT`, which is invalid there, so that the
  /// response has expired (RFC 9111 §4.2, §5.3).
  package init?(expiration text: String, receivedAt now: Timestamp) {
    self.init(text, now, acceptsUTC: false)
  }

  private init?(_ text: String, _ now: Timestamp, acceptsUTC: Bool) {
    var text = text
    let time = text.withUTF8 { HTTPDateReader.read($0, now: now, acceptsUTC: acceptsUTC) }
    guard let time else { return nil }
    timestamp = time.timestamp
  }

  public static func < (a: Self, b: Self) -> Bool { a.timestamp < b.timestamp }
}

extension HTTPDate: CustomStringConvertible {
  /// The preferred form. A ``Timestamp`` never has a year outside 0 to 9999, which this form cannot represent.
  public var description: String {
    let time = CivilTime(timestamp)
    let day = HTTPDateReader.weekdays[Int(time.weekday)].prefix(3)
    let month = HTTPDateReader.months[Int(time.month) - 1]
    return "\(day), \(CivilTime.padded(time.day, 2)) \(month) \(CivilTime.padded(time.year, 4)) \(time.clock) GMT"
  }
}

/// A reader of the three forms of an HTTP date. It returns `nil` at the first unexpected byte.
struct HTTPDateReader {
  static let weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
  static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  private var rest: Slice<UnsafeBufferPointer<UInt8>>
  private let acceptsUTC: Bool

  static func read(_ text: UnsafeBufferPointer<UInt8>, now: Timestamp, acceptsUTC: Bool) -> CivilTime? {
    let text = text.trimmingBlanks()
    if let time = fixed(text) { return time.exists ? time : nil }
    let reader = HTTPDateReader(rest: text[...], acceptsUTC: acceptsUTC)
    let time = reader.preferred() ?? reader.withTwoDigitYear(now: now) ?? reader.asctime()
    return time.flatMap { $0.exists ? $0 : nil }
  }

  /// Reads the preferred form in its exact layout and case, which nearly every origin sends. If it returns `nil`, the general
  /// parser reads the date.
  private static func fixed(_ bytes: UnsafeBufferPointer<UInt8>) -> CivilTime? {
    guard bytes.count == 29, bytes[3] == 0x2C, bytes[4] == 0x20, bytes[7] == 0x20, bytes[11] == 0x20, bytes[16] == 0x20,
      bytes[19] == 0x3A, bytes[22] == 0x3A, bytes[25] == 0x20, index(of: bytes, 26, in: "GMT") != nil,
      index(of: bytes, 0, in: "SunMonTueWedThuFriSat") != nil,
      let month = index(of: bytes, 8, in: "JanFebMarAprMayJunJulAugSepOctNovDec"), let day = twoDigits(bytes, 5),
      let century = twoDigits(bytes, 12), let year = twoDigits(bytes, 14), let hour = twoDigits(bytes, 17),
      let minute = twoDigits(bytes, 20), let second = twoDigits(bytes, 23)
    else { return nil }
    return CivilTime(year: century * 100 + year, month: Int64(month) + 1, day: day, hour: hour, minute: minute, second: second)
  }

  /// Returns the index of the three letters at `start` in a list of abbreviations of three letters, or `nil` if it lacks them.
  private static func index(of bytes: UnsafeBufferPointer<UInt8>, _ start: Int, in names: StaticString) -> Int? {
    let names = UnsafeBufferPointer(start: names.utf8Start, count: names.utf8CodeUnitCount)
    return (0..<names.count / 3).first { index in
      names[index * 3] == bytes[start] && names[index * 3 + 1] == bytes[start + 1] && names[index * 3 + 2] == bytes[start + 2]
    }
  }

  private static func twoDigits(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int) -> Int64? {
    let (tens, ones) = (bytes[start] &- UInt8(ascii: "0"), bytes[start + 1] &- UInt8(ascii: "0"))
    return tens < 10 && ones < 10 ? Int64(tens) * 10 + Int64(ones) : nil
  }

  /// Reads `Sun, 06 Nov 1994 08:49:37 GMT`.
  private func preferred() -> CivilTime? {
    var reader = self
    guard reader.weekday(length: 3), reader.text(", "), let day = reader.number(2), reader.text(" "), let month = reader.month(),
      reader.text(" "), let year = reader.number(4), reader.text(" "), let clock = reader.clock(), reader.zone()
    else { return nil }
    return CivilTime(year: year, month: month, day: day, hour: clock.0, minute: clock.1, second: clock.2)
  }

  /// Reads `Sunday, 06-Nov-94 08:49:37 GMT`.
  private func withTwoDigitYear(now: Timestamp) -> CivilTime? {
    var reader = self
    guard reader.weekday(length: nil), reader.text(", "), let day = reader.number(2), reader.text("-"),
      let month = reader.month(),
      reader.text("-"), let year = reader.number(2), reader.text(" "), let clock = reader.clock(), reader.zone()
    else { return nil }
    var limit = CivilTime(now)
    let century = limit.year / 100 * 100
    limit.year += 50
    var time = CivilTime(year: century + 100 + year, month: month, day: day, hour: clock.0, minute: clock.1, second: clock.2)
    while time.timestamp > limit.timestamp { time.year -= 100 }
    return time
  }

  /// Reads `Sun Nov  6 08:49:37 1994`.
  private func asctime() -> CivilTime? {
    var reader = self
    guard reader.weekday(length: 3), reader.text(" "), let month = reader.month(), reader.text(" "),
      let day = reader.text(" ") ? reader.number(1) : reader.number(2), reader.text(" "), let clock = reader.clock(),
      reader.text(" "), let year = reader.number(4), reader.rest.isEmpty
    else { return nil }
    return CivilTime(year: year, month: month, day: day, hour: clock.0, minute: clock.1, second: clock.2)
  }

  private mutating func weekday(length: Int?) -> Bool {
    Self.weekdays.contains { text($0.prefix(length ?? $0.utf8.count)) }
  }

  private mutating func month() -> Int64? {
    Self.months.firstIndex { text($0[...]) }.map { Int64($0) + 1 }
  }

  private mutating func clock() -> (Int64, Int64, Int64)? {
    guard let hour = number(2), text(":"), let minute = number(2), text(":"), let second = number(2) else { return nil }
    return (hour, minute, second)
  }

  private mutating func zone() -> Bool { (text(" GMT") || acceptsUTC && text(" UTC")) && rest.isEmpty }

  /// Consumes `expected`, in any case, if it comes next.
  private mutating func text(_ expected: Substring) -> Bool {
    var left = rest
    for byte in expected.utf8 {
      guard let next = left.first, next.lowercased == byte.lowercased else { return false }
      left = left.dropFirst()
    }
    rest = left
    return true
  }

  private mutating func number(_ digits: Int) -> Int64? {
    let text = rest.prefix(digits)
    guard text.count == digits else { return nil }
    var value: Int64 = 0
    for byte in text {
      guard case UInt8(ascii: "0")...UInt8(ascii: "9") = byte else { return nil }
      value = value * 10 + Int64(byte - UInt8(ascii: "0"))
    }
    rest = rest.dropFirst(digits)
    return value
  }
}

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
