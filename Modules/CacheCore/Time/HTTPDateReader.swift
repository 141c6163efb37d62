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
    return CivilTime(
      year: century * 100 + year, month: Int64(month) + 1, day: day, hour: hour, minute: minute, second: second)
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
      guard let next = left.first, Self.folded(next) == Self.folded(byte) else { return false }
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

  private static func folded(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }
}
