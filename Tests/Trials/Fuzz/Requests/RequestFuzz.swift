import CacheCore
import HTTPTypes
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Fuzzes the requests of clients: those of HTTP connections, and the paths of the image service. The first byte selects the
/// parser.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRequest(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let choice = bytes.first else { return 0 }
  let rest = Array(bytes.dropFirst())
  let text = String(decoding: rest, as: UTF8.self)
  switch choice % 8 {
  case 0, 1, 2: checkConnection(rest, cut: Int(choice >> 3))
  case 3: checkAuthority(text)
  case 4: checkPath(text)
  case 5: checkOperations(text, ratio: 1 + Double(choice >> 3) / 10)
  case 6: checkSource(text)
  default: checkNegotiation(text)
  }
  return 0
}

/// Checks that requests do not depend on the parts in which they arrive, and that another recipient, which gets the requests as
/// the parser has read them, sees as many and the same (RFC 9112 §11.2).
private func checkConnection(_ bytes: [UInt8], cut: Int) {
  let read = FuzzedConnection(bytes, cut: bytes.count)
  precondition(FuzzedConnection(bytes, cut: 1 + cut) == read)
  let again = FuzzedConnection(read.requests.flatMap(\.written), cut: Int.max)
  precondition(again.refusal == nil && again.requests == read.requests.filter(\.isComplete))
}

/// The requests that the parser reads from a connection.
private struct FuzzedConnection: Equatable {
  struct Request: Equatable {
    let method: String
    let target: String
    let isHTTP10: Bool
    let framing: RequestFraming
    let fields: [[UInt8]]
    let path: String?
    let authority: String?
    var body: [UInt8] = []
    var isComplete = false

    init(_ head: RequestHead) {
      (method, target, isHTTP10, framing) = (head.request.method.rawValue, head.rawTarget, head.isHTTP10, head.framing)
      (path, authority) = (head.request.path, head.request.authority)
      fields = head.request.headerFields.map { field in
        Array(field.name.rawName.utf8) + Array(": ".utf8) + field.withUnsafeBytesOfValue { Array($0) }
      }
      _ = (head.keepsAlive, head.expectsContinue, head.acceptsTrailers)
    }

    /// The bytes of the request, with a body of one chunk, or nothing if the request is not complete.
    var written: [UInt8] {
      guard isComplete else { return [] }
      var bytes = Array("\(method) \(target) HTTP/1.\(isHTTP10 ? 0 : 1)\r\n".utf8)
      for field in fields { bytes += field + [13, 10] }
      bytes += [13, 10]
      guard framing == .chunked else { return bytes + body }
      if !body.isEmpty { bytes += Array("\(String(body.count, radix: 16))\r\n".utf8) + body + [13, 10] }
      return bytes + Array("0\r\n\r\n".utf8)
    }

    func check() {
      precondition(path?.utf8.first == UInt8(ascii: "/") || path == "*" && method == "OPTIONS")
      precondition(target.utf8.allSatisfy { (0x21...0x7E).contains($0) } && method.utf8.allSatisfy(\.isTokenByte))
      precondition(authority.map { Authority.isValid($0) } ?? isHTTP10)
      for field in fields { precondition(!field.contains(13) && !field.contains(10) && !field.contains(0)) }
      switch framing {
      case .noBody: precondition(body.isEmpty)
      case .length(let length): precondition(length > 0 && (isComplete ? body.count == length : body.count < length))
      case .chunked: break
      }
    }
  }

  private(set) var requests: [Request] = []
  private(set) var refusal: RequestRefusal?

  init(_ bytes: [UInt8], cut: Int) {
    var parser = RequestParser()
    var rest = bytes[...]
    while !rest.isEmpty, refusal == nil {
      parser.append(ByteBuffer(bytes: Array(rest.prefix(cut))))
      rest = rest.dropFirst(cut)
      read(&parser)
    }
    for request in requests { request.check() }
    precondition(requests.dropLast().allSatisfy(\.isComplete))
  }

  private mutating func read(_ parser: inout RequestParser) {
    do throws(RequestRefusal) {
      while let part = try parser.next() {
        switch part {
        case .head(let head): requests.append(Request(head))
        case .body(let bytes):
          precondition(bytes.readableBytes > 0)
          requests[requests.count - 1].body += bytes.readableBytesView
        case .end: requests[requests.count - 1].isComplete = true
        }
      }
    } catch {
      refusal = error
      precondition((400...505).contains(error.status.code) && !error.reason.isEmpty)
      // A refused connection stays refused.
      let second = Result { () throws(RequestRefusal) in try parser.next() }
      guard case .failure(error) = second else { preconditionFailure("the parser goes on after \(error)") }
    }
  }
}

private func checkAuthority(_ text: String) {
  if let address = HostAndPort(text) {
    precondition((0...65_535).contains(address.port) && HostAndPort(address.description) == address)
  }
  checkTarget(text)
  guard Authority.isValid(text) else { return }
  precondition(!text.utf8.contains { $0 <= 0x20 || $0 >= 0x7F || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "@") })
}

/// Checks that a target which counts as plain is read in the same way by the parser of URLs.
private func checkTarget(_ text: String) {
  let slash = text.firstIndex(of: "/") ?? text.endIndex
  let request = HTTPRequest(
    method: .get, scheme: "https", authority: String(text[..<slash]), path: String(text[slash...]))
  guard request.hasPlainTarget, let authority = request.authority, let path = request.path else { return }
  guard let url = URL(encoding: "https://\(authority)\(path)"), let parsed = try? HTTPRequest(parsing: url) else {
    preconditionFailure("a plain target is no URL")
  }
  precondition(parsed == request && url.absoluteString == "https://\(authority)\(path)" && url.isSameOrigin(as: url))
}
