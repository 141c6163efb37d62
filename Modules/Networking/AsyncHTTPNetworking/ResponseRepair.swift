#if AsyncHTTP
internal import CacheCore
internal import NIOCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Rewrites the forms of an HTTP/1 response that RFC 9112 tells a client to accept or to repair, and that SwiftNIO's parser
/// refuses or ignores:
/// - folded field lines (§5.2), blanks before a colon (§5.1) and after a chunk size (§7.1.1)
/// - blanks around a length or a transfer coding, empty members of their lists, and a length that is repeated (§6.3)
///
/// It only removes or replaces bytes that have no meaning. Everything else reaches the parser unchanged, which judges it. It
/// refuses what the parser would accept but not undo (`gzip, chunked`), and a line whose end the parser sees elsewhere.
///
/// A value without a connection. ``ResponseGuard`` feeds it.
struct ResponseRepair {
  /// A part of the bytes that were received, without a reference to their buffer: almost every line is only looked at.
  fileprivate typealias Bytes = Slice<UnsafeRawBufferPointer>

  private struct Edit {
    let bytes: Range<Int>
    let replacement: [UInt8]
  }

  private enum Stage {
    /// No part of the rest of the connection's bytes is rewritten, until the next request.
    case rest
    case statusLine
    case fields
    case trailers
    case chunkSize
    case chunk(left: Int)
    case chunkEnd
  }

  /// The maximum number of bytes of a line that are held back: the parser's limit of a field.
  private static let lineLimit = 80 << 10

  private var stage = Stage.rest
  /// The start of a line whose end, or whose continuation, has not arrived.
  private var held = ByteBuffer()
  /// The number of held bytes that were searched for the end of the line.
  private var searched = 0

  private var isHead = false
  private var isInterim = false
  private var hasBody = true
  private var isChunked = false
  private var length: Int?

  /// Expects a response.
  ///
  /// - Parameter isHead: Whether the request has the method HEAD, so that the response has no body.
  mutating func expectResponse(isHead: Bool) {
    self.isHead = isHead
    startHead()
  }

  private mutating func startHead() {
    stage = .statusLine
    (isInterim, hasBody, isChunked, length) = (false, !isHead, false, nil)
  }

  /// Returns the bytes for the parser, or `nil` if there are none yet.
  mutating func repair(_ received: ByteBuffer) throws(CacheError) -> ByteBuffer? {
    if case .rest = stage { return received }
    var input = received
    if held.readableBytes > 0 {
      held.writeImmutableBuffer(received)
      input = held
      held = ByteBuffer()
    }
    let (position, edits) = try input.withUnsafeReadableBytes { bytes in
      Result { () throws(CacheError) in try scan(bytes) }
    }.get()
    if position < input.readableBytes {
      // Without a complete line the buffer stays, so that each byte of a slow line is copied and searched once.
      held = position == 0 ? input : ByteBuffer(input.readableBytesView.dropFirst(position))
      guard held.readableBytes <= Self.lineLimit else {
        throw CacheError(.malformedResponse, reason: "a line of the response is too large")
      }
    }
    guard position > 0 else { return nil }
    let output = position == input.readableBytes ? input : input.getSlice(at: input.readerIndex, length: position) ?? input
    return edits.isEmpty ? output : Self.apply(edits, to: output)
  }

  /// Passes all complete lines. Returns the number of bytes that are ready for the parser, and the changes to them.
  private mutating func scan(_ bytes: UnsafeRawBufferPointer) throws(CacheError) -> (Int, [Edit]) {
    var edits: [Edit] = []
    var position = 0
    while position < bytes.count {
      switch stage {
      case .rest: return (bytes.count, edits)
      case .chunk(let left):
        let count = min(left, bytes.count - position)
        position += count
        stage = left == count ? .chunkEnd : .chunk(left: left - count)
      case .statusLine, .fields, .trailers, .chunkSize, .chunkEnd:
        let line = bytes[position...]
        guard let end = lineEnd(in: line) else { return (position, edits) }
        if let replacement = try pass(line[..<end]) { edits.append(Edit(bytes: position..<end, replacement: replacement)) }
        position = end
      }
    }
    return (position, edits)
  }

  /// Takes the bytes that are held back, because no more will arrive.
  mutating func takeHeld() -> ByteBuffer? {
    defer { (held, searched) = (ByteBuffer(), 0) }
    return held.readableBytes > 0 ? held : nil
  }

  private static func apply(_ edits: [Edit], to input: ByteBuffer) -> ByteBuffer {
    let bytes = input.readableBytesView
    var output = ByteBuffer()
    output.reserveCapacity(bytes.count)
    var position = 0
    for edit in edits {
      output.writeBytes(bytes[(bytes.startIndex + position)..<(bytes.startIndex + edit.bytes.lowerBound)])
      output.writeBytes(edit.replacement)
      position = edit.bytes.upperBound
    }
    output.writeBytes(bytes[(bytes.startIndex + position)...])
    return output
  }

  // MARK: Lines

  /// The end of the line that starts here, after its line break, or `nil` if it is not known yet. A field line ends where no
  /// continuation follows.
  private mutating func lineEnd(in line: Bytes) -> Int? {
    var search = line.dropFirst(searched)
    searched = 0
    // The bytes are not HTTP, so the parser refuses them now. They may have no line break.
    guard canBegin(line) else { return line.endIndex }
    while let feed = search.position(of: .lf) {
      let next = feed + 1
      guard isFoldable, !isEmpty(line[..<next]) else { return next }
      guard next < line.endIndex else {
        searched = feed - line.startIndex
        return nil
      }
      guard line[next].isBlank else { return next }
      search = line[next...]
    }
    searched = line.count
    return nil
  }

  private func canBegin(_ line: Bytes) -> Bool {
    switch stage {
    case .statusLine: line.first == .cr || line.first == .lf || line.starts(with: "HTTP/".utf8.prefix(line.count))
    case .chunkSize: line.first?.hexValue != nil
    case .chunkEnd: line.first == .lf || line.first == .cr && line.dropFirst().first.map { $0 == .lf } ?? true
    case .rest, .fields, .trailers, .chunk: true
    }
  }

  private var isFoldable: Bool {
    switch stage {
    case .fields, .trailers: true
    case .rest, .statusLine, .chunkSize, .chunk, .chunkEnd: false
    }
  }

  private func isEmpty(_ line: Bytes) -> Bool {
    line.last == .lf && (line.count == 1 || line.count == 2 && line.first == .cr)
  }

  /// Passes a complete line with its line break. Returns its replacement, or `nil` if it stays.
  private mutating func pass(_ line: Bytes) throws(CacheError) -> [UInt8]? {
    switch stage {
    case .statusLine:
      // The parser skips empty lines before a response.
      guard !isEmpty(line) else { return nil }
      try passStatus(line)
    case .fields:
      guard isEmpty(line) else { return try field(line) }
      if isInterim { startHead() } else { stage = isChunked && hasBody ? .chunkSize : .rest }
    case .trailers:
      guard isEmpty(line) else { return Field(line).repaired }
      stage = .rest
    case .chunkSize: return chunkSize(line)
    case .chunkEnd: stage = isEmpty(line) ? .chunkSize : .rest
    case .rest, .chunk: break
    }
    return nil
  }

  private mutating func passStatus(_ line: Bytes) throws(CacheError) {
    let code = line.dropFirst("HTTP/1.1 ".utf8.count).prefix(3)
    guard line.starts(with: "HTTP/".utf8), code.count == 3, let status = code.decimal else { return stage = .rest }
    // The parser takes CR CR for the end of this line. The rest of the line would be a field or the body.
    guard line.dropLast(2).position(of: .cr) == nil else {
      throw CacheError(.malformedResponse, reason: "the response is not HTTP: its status line has a bare CR")
    }
    isInterim = (100...199).contains(status) && status != 101
    hasBody = !isHead && status >= 200 && status != 204 && status != 304
    stage = .fields
  }

  private mutating func chunkSize(_ line: Bytes) -> [UInt8]? {
    let digits = line.prefix { $0.hexValue != nil }
    // A size of more digits is the parser's to judge.
    guard (1...15).contains(digits.count) else {
      stage = .rest
      return nil
    }
    let size = digits.reduce(0) { $0 << 4 | Int($1.hexValue ?? 0) }
    stage = size == 0 ? .trailers : .chunk(left: size)
    // Extensions are removed with the blanks: a recipient ignores those that it does not know (RFC 9112 §7.1.1).
    let rest = line[digits.endIndex...]
    let next = rest.drop(while: \.isBlank).first
    guard rest.count > 2, next == .cr || next == UInt8(ascii: ";"), rest.position(of: .cr) == line.endIndex - 2 else {
      return nil
    }
    return Array(digits) + [.cr, .lf]
  }

  // MARK: Fields

  private mutating func field(_ line: Bytes) throws(CacheError) -> [UInt8]? {
    let field = Field(line)
    guard field.endsInCRLF else { return nil }
    switch field.name.count {
    case 14 where field.isNamed("content-length"): return try lengthField(field)
    case 17 where field.isNamed("transfer-encoding"): return try codingField(field)
    default: return field.repaired
    }
  }

  /// Reduces equal lengths to one (RFC 9112 §6.3, item 5). The parser judges a value that is not a length.
  private mutating func lengthField(_ field: Field) throws(CacheError) -> [UInt8]? {
    if length == nil, let digits = field.plainValue, digits.first != UInt8(ascii: "0"), let value = digits.decimal {
      length = value
      return nil
    }
    let values = field.members.map(\.decimal)
    guard let first = values.first, let value = first else { return field.repaired }
    guard values.allSatisfy({ $0 == value }), length == nil || length == value else {
      throw CacheError(.malformedResponse, reason: "the response is not HTTP: it has two different lengths")
    }
    defer { length = value }
    return length == nil ? field.replacement(value: String(value)) : []
  }

  /// Leaves one `chunked` in the spelling of the parser, which reads the rest of the connection for every other coding.
  private mutating func codingField(_ field: Field) throws(CacheError) -> [UInt8]? {
    // Without a body, the field only describes the response to a GET (RFC 9112 §6.1).
    guard hasBody else { return [] }
    if !isChunked, let value = field.plainValue, value.elementsEqual("chunked".utf8) {
      isChunked = true
      return nil
    }
    // "identity" is the absence of a coding (RFC 2616 §3.6).
    let codings = field.members.map { String(decoding: $0, as: UTF8.self).lowercased() }.filter { $0 != "identity" }
    guard !codings.isEmpty else { return [] }
    guard codings == ["chunked"], !isChunked else { throw .unknownTransferCoding(codings.joined(separator: ", ")) }
    isChunked = true
    return field.replacement(value: "chunked")
  }
}

/// A field line with its line break, and its continuations.
private struct Field {
  private let line: ResponseRepair.Bytes
  private let colon: Int
  /// The name without the blanks that may follow it. Blanks before it are an error that the parser reports.
  let name: ResponseRepair.Bytes
  /// Whether continuations follow the first line.
  private let isFolded: Bool

  init(_ line: ResponseRepair.Bytes) {
    self.line = line
    colon = line.position(of: UInt8(ascii: ":")) ?? line.startIndex
    name = line[..<colon].droppingLastBlanks()
    isFolded = line.position(of: .lf) != line.endIndex - 1
  }

  /// Returns whether the field has a name, in lower case.
  func isNamed(_ other: StaticString) -> Bool {
    name.elementsEqual(UnsafeBufferPointer(start: other.utf8Start, count: other.utf8CodeUnitCount)) { $0 | 0x20 == $1 }
  }

  /// Whether each line break is CR LF. The parser refuses a bare LF, also one that a rewritten line would not have.
  var endsInCRLF: Bool {
    guard isFolded else { return line.dropLast().last == .cr }
    var rest = line
    while let feed = rest.position(of: .lf) {
      guard feed > line.startIndex, line[feed - 1] == .cr else { return false }
      rest = line[(feed + 1)...]
    }
    return true
  }

  /// The value of a line in the parser's form, or `nil` if the line has to be looked at in detail.
  var plainValue: ResponseRepair.Bytes? {
    guard !isFolded, name.endIndex == colon, colon > line.startIndex else { return nil }
    return line[(colon + 1)...].dropLast(2).drop(while: \.isBlank)
  }

  /// The value in one line (RFC 9112 §5.2).
  private var value: [UInt8] {
    let lines = line[colon...].dropFirst().split(separator: .lf)
    return Array(lines.map { ($0.last == .cr ? $0.dropLast() : $0).trimmingBlanks() }.joined(separator: [UInt8(ascii: " ")]))
  }

  /// The members of the value as a list, without empty ones (RFC 9110 §5.6.1).
  var members: [ArraySlice<UInt8>] {
    value.split(separator: UInt8(ascii: ",")).map { $0.trimmingBlanks() }.filter { !$0.isEmpty }
  }

  /// The line without continuations and without blanks before the colon, or `nil` if it has neither.
  var repaired: [UInt8]? {
    guard colon > line.startIndex, name.endIndex < colon || isFolded, endsInCRLF else { return nil }
    return Array(name) + [UInt8(ascii: ":"), UInt8(ascii: " ")] + value + [.cr, .lf]
  }

  /// The line with another value, or `nil` if the line already has it in the parser's form.
  func replacement(value new: String) -> [UInt8]? {
    let form = [UInt8]("\(new)\r\n".utf8)
    if repaired == nil, line[colon...].dropFirst().drop(while: \.isBlank).elementsEqual(form) { return nil }
    return Array(name) + ": ".utf8 + form
  }
}

extension ResponseRepair.Bytes {
  /// The position of a byte. `firstIndex(of:)` takes several times as long.
  fileprivate func position(of byte: UInt8) -> Int? {
    guard !isEmpty, let start = base.baseAddress, let found = memchr(start + startIndex, Int32(byte), count) else { return nil }
    return UnsafeRawPointer(found) - start
  }
}

extension CacheError {
  /// The error for a body in a form that nothing undoes.
  static func unknownTransferCoding(_ codings: String) -> CacheError {
    CacheError(.malformedResponse, reason: "the transfer coding '\(codings)' is not supported")
  }
}

extension UInt8 {
  fileprivate static let cr: UInt8 = 13
  fileprivate static let lf: UInt8 = 10

  fileprivate var isBlank: Bool { self == 32 || self == 9 }
}

extension Collection<UInt8> {
  /// The number in decimal digits, or `nil` for other bytes and for more than 18 digits.
  fileprivate var decimal: Int? {
    guard !isEmpty, count <= 18, allSatisfy({ (48...57).contains($0) }) else { return nil }
    return reduce(0) { $0 * 10 + Int($1 - 48) }
  }
}

extension BidirectionalCollection<UInt8> where SubSequence == Self {
  fileprivate func droppingLastBlanks() -> Self {
    var rest = self
    while rest.last?.isBlank == true { rest = rest.dropLast() }
    return rest
  }
}
#endif
