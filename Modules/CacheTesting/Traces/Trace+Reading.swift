extension Trace {
  /// A malformed line of a recorded trace.
  package struct LineError: Error, Equatable, CustomStringConvertible {
    /// The line number, starting at 1.
    package let line: Int
    package let reason: String

    package init(line: Int, reason: String) { (self.line, self.reason) = (line, reason) }

    package var description: String { "line \(line): \(reason)" }
  }

  /// A line of a recorded trace.
  package struct Line: Equatable, Sendable {
    /// The line number, starting at 1.
    package let number: Int
    /// The time of the request, in the unit of the trace.
    package let time: Double
    package let object: String
    /// The size in bytes.
    package let size: Int
  }

  /// Reads a recorded trace with lines of the form `time,object,size`. Lines end with LF or CRLF, which is optional for
  /// the last line.
  ///
  /// - Parameters:
  ///   - bytes: The trace. Empty input is a trace without requests.
  ///   - body: A closure that is called with the object and the size in bytes of each line, up to the first malformed
  ///     one.
  package static func read(_ bytes: UnsafeRawBufferPointer, _ body: (_ object: String, _ size: Int) -> Void) throws(LineError) {
    try readLines(bytes) { line throws(LineError) in body(line.object, line.size) }
  }

  /// Reads the lines of a recorded trace with their times.
  ///
  /// - Parameters:
  ///   - bytes: The trace. Empty input is a trace without requests.
  ///   - body: A closure that is called with each line, up to the first malformed one. An error that it throws ends the reading.
  package static func readLines(
    _ bytes: UnsafeRawBufferPointer, _ body: (Line) throws(LineError) -> Void
  ) throws(LineError) {
    var rest = bytes[...]
    var number = 0
    var total = 0
    while !rest.isEmpty {
      number += 1
      var line = rest.prefix { $0 != UInt8(ascii: "\n") }
      rest = rest[line.endIndex...].dropFirst()
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
      let parsed = try parse(line, number)
      let (sum, overflow) = total.addingReportingOverflow(parsed.size)
      guard !overflow else { throw LineError(line: number, reason: "the sizes add up to more than \(Int.max) bytes") }
      total = sum
      try body(parsed)
    }
  }

  private static func parse(_ line: Slice<UnsafeRawBufferPointer>, _ number: Int) throws(LineError) -> Line {
    let fields = line.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map(text)
    func failed(_ reason: String) -> LineError { LineError(line: number, reason: reason) }
    guard fields.count == 3 else { throw failed("\(fields.count) fields, not time,object,size") }
    guard let time = Double(fields[0]) else { throw failed("the time '\(fields[0])' is not a number") }
    guard !fields[1].isEmpty else { throw failed("the object has no name") }
    guard let size = Int(fields[2]), size >= 0 else { throw failed("the size '\(fields[2])' is not a number of bytes") }
    return Line(number: number, time: time, object: fields[1], size: size)
  }

  /// Removes surrounding blanks.
  private static func text(_ field: Slice<UnsafeRawBufferPointer>) -> String {
    func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
    var field = field.drop(while: isBlank)
    while let last = field.last, isBlank(last) { field.removeLast() }
    return String(decoding: field, as: UTF8.self)
  }
}
