import NIOCore

/// A response, parsed from its bytes on the wire.
struct RawAnswer: Sendable {
  var statusLine: String
  /// The names and values of the fields, unchanged and in order.
  var fields: [(name: String, value: String)] = []
  var body = ""
  /// The sizes of the chunks, or empty for a body without chunks.
  var chunks: [Int] = []
  var trailers: [String] = []
  /// The number of bytes on the wire.
  var length = 0

  var status: Int { Int(statusLine.split(separator: " ").dropFirst().first ?? "") ?? 0 }

  subscript(name: String) -> String? { self[all: name].first }

  subscript(all name: String) -> [String] { fields.filter { $0.name.lowercased() == name }.map(\.value) }

  /// Parses a response, or returns `nil` if it is not complete yet.
  init?(_ bytes: ByteBuffer, to method: String, atEnd: Bool) {
    var rest = bytes
    guard let head = Self.line(&rest) else { return nil }
    statusLine = head
    while true {
      guard let line = Self.line(&rest) else { return nil }
      if line.isEmpty { break }
      let colon = line.firstIndex(of: ":") ?? line.endIndex
      fields.append((String(line[..<colon]), String(line[colon...].dropFirst(2))))
    }
    if method != "HEAD", status >= 200, status != 204, status != 304 {
      guard readBody(&rest, atEnd: atEnd) else { return nil }
    }
    length = bytes.readableBytes - rest.readableBytes
  }

  private mutating func readBody(_ rest: inout ByteBuffer, atEnd: Bool) -> Bool {
    if self["transfer-encoding"] == "chunked" { return readChunks(&rest) }
    guard let length = self["content-length"].flatMap(Int.init) else {
      guard atEnd else { return false }
      body = rest.readString(length: rest.readableBytes) ?? ""
      return true
    }
    guard let text = rest.readString(length: length) else { return false }
    body = text
    return true
  }

  private mutating func readChunks(_ rest: inout ByteBuffer) -> Bool {
    while true {
      guard let line = Self.line(&rest), let size = Int(line, radix: 16) else { return false }
      guard size > 0 else { break }
      guard let text = rest.readString(length: size), Self.line(&rest) == "" else { return false }
      body += text
      chunks.append(size)
    }
    while let line = Self.line(&rest) {
      if line.isEmpty { return true }
      trailers.append(line)
    }
    return false
  }

  private static func line(_ rest: inout ByteBuffer) -> String? {
    guard let end = rest.readableBytesView.firstIndex(of: 10) else { return nil }
    let line = rest.readString(length: end - rest.readerIndex + 1) ?? ""
    // In Swift, CR and LF together are one Character.
    return line.hasSuffix("\r\n") ? String(line.dropLast()) : line
  }
}
