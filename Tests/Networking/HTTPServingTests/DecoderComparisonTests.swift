#if Server
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import HTTPServing

/// The differences from SwiftNIO's decoder, which are the reason for this module's own parser. If SwiftNIO changes one of them,
/// its test fails, and the decision must be made again.
@Suite("The request parser and SwiftNIO's decoder")
struct DecoderComparisonTests {
  /// Returns the heads that SwiftNIO's decoder reads, and its first error.
  private static func nio(_ bytes: ByteBuffer) throws -> (heads: [HTTPRequestHead], error: (any Error)?) {
    let channel = EmbeddedChannel(handler: ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)))
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    var failure: (any Error)?
    do {
      try channel.writeInbound(bytes)
    } catch {
      failure = error
    }
    var heads: [HTTPRequestHead] = []
    while let part = try? channel.readInbound(as: HTTPServerRequestPart.self) {
      if case .head(let head) = part { heads.append(head) }
    }
    _ = try? channel.finish()
    return (heads, failure)
  }

  /// Returns the heads that this module's parser reads, and its refusal.
  private static func own(_ bytes: ByteBuffer) -> (heads: [RequestHead], refusal: RequestRefusal?) {
    var parser = RequestParser()
    parser.append(bytes)
    var heads: [RequestHead] = []
    do throws(RequestRefusal) {
      while let part = try parser.next() { if case .head(let head) = part { heads.append(head) } }
      return (heads, nil)
    } catch {
      return (heads, error)
    }
  }

  @Test("a method that SwiftNIO does not know reaches the origin", arguments: ["FROBNICATE", "get"])
  func method(_ method: String) throws {
    let request = ByteBuffer(string: "\(method) / HTTP/1.1\r\nHost: h\r\n\r\n")
    let other = try Self.nio(request)
    #expect(other.heads.isEmpty && other.error != nil)
    #expect(Self.own(request).heads.map(\.request.method.rawValue) == [method])
  }

  @Test("a method keeps its name")
  func renamedMethod() throws {
    let request = ByteBuffer(string: "M-SEARCH / HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(try Self.nio(request).heads.map(\.method.rawValue) == ["MSEARCH"])
    #expect(Self.own(request).heads.map(\.request.method.rawValue) == ["M-SEARCH"])
  }

  @Test("a value keeps bytes that are not UTF-8")
  func bytes() throws {
    var request = ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\nX-Name: ")
    request.writeBytes([0xE9, 0x20, 0xFF])
    request.writeString("\r\n\r\n")
    #expect(try Self.nio(request).heads.first?.headers.first(name: "X-Name") == "\u{FFFD} \u{FFFD}")
    let field = Self.own(request).heads.first?.request.headerFields.first { $0.name.rawName == "X-Name" }
    #expect(field?.withUnsafeBytesOfValue { Array($0) } == [0xE9, 0x20, 0xFF])
  }

  @Test("a request after one with Upgrade is read")
  func upgrade() throws {
    let request = ByteBuffer(
      string: "GET /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(try Self.nio(request).heads.map(\.uri) == ["/a"])
    #expect(Self.own(request).heads.map(\.request.path) == ["/a", "/b"])
  }

  @Test("a later minor version is read as HTTP/1.1")
  func version() throws {
    let request = ByteBuffer(string: "GET / HTTP/1.2\r\nHost: h\r\n\r\n")
    let other = try Self.nio(request)
    #expect(other.heads.isEmpty && other.error != nil)
    #expect(Self.own(request).heads.count == 1)
  }

  @Test(
    "a request that SwiftNIO accepts and changes before a check can see it is refused",
    arguments: [
      "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", "GET /  HTTP/1.1\r\nHost: h\r\n\r\n", "\n\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /a RTSP/1.0\r\nHost: h\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;\(String(repeating: "x", count: 100_000))\r\na\r\n0\r\n\r\n",
    ])
  func lenient(_ text: String) throws {
    let other = try Self.nio(ByteBuffer(string: text))
    #expect(other.heads.count == 1 && other.error == nil)
    #expect(Self.own(ByteBuffer(string: text)).refusal != nil)
  }
}
#endif
