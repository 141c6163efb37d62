#if Origin
internal import CacheTesting
internal import HTTPTypes
internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A response as the steps of its delivery. All decisions are made here, and nothing is sent.
struct ResponseScript {
  enum Step {
    case head(ByteBuffer, isNotModified: Bool)
    case bytes(ByteBuffer, isBody: Bool)
    /// Sends the bytes one at a time, with a pause after each.
    case trickle(ByteBuffer, isBody: Bool, every: Duration)
    /// Sends the same bytes repeatedly, without end.
    case endless(ByteBuffer)
    case wait(Duration)
    case hold(Gate)
    case stall
    case close
    case reset
  }

  private(set) var steps: [Step] = []

  init(_ response: OriginResponse, to request: ReceivedRequest, date: Date) {
    let delivery = response.delivery
    for interim in delivery.interim where !request.isHTTP10 {
      steps.append(.bytes(Self.head(interim.status, interim.fields), isBody: false))
    }
    if let gate = delivery.gate { steps.append(.hold(gate)) }
    if delivery.headDelay > .zero { steps.append(.wait(delivery.headDelay)) }
    switch delivery.fault {
    case .closeBeforeHead: steps.append(.close)
    case .resetBeforeHead: steps.append(.reset)
    case .stallBeforeHead: steps.append(.stall)
    case .garbage: steps += [.bytes(ByteBuffer(bytes: Self.garbage), isBody: false), .close]
    case .raw(let bytes, let thenCloses):
      steps.append(.bytes(ByteBuffer(bytes: bytes), isBody: false))
      if thenCloses || request.requestsClose { steps.append(.close) }
    case .closeMidHead, .resetMidHead, .endlessHead, .trickleHead, .trickle, .cut, .reset, .stall, .malformedChunk, .surplus,
      .closeAfterwards, nil:
      addMessage(response.response(to: request, date: date), delivery, request)
    }
  }

  /// Bytes that are neither a status line nor text.
  private static let garbage: [UInt8] = [0x00, 0xFF, 0x16, 0x03, 0x7F] + Array("\r\nthis is not HTTP\r\n\r\n".utf8)

  // MARK: The message

  private mutating func addMessage(_ response: OriginResponse.Response, _ delivery: OriginDelivery, _ request: ReceivedRequest) {
    var fields = response.fields
    var isChunked = false
    var closes = request.requestsClose || delivery.closesAfterwards
    var breaks = false
    let statusHasBody =
      response.status.kind != .informational && response.status != .noContent && response.status != .notModified
    let hasBody = statusHasBody && request.method != .head
    let length = response.content.readableBytes
    if statusHasBody {
      switch Self.framing(delivery) {
      case .contentLength: fields.addIfAbsent(.contentLength, String(length))
      case .claimedLength(let claimed):
        fields[.contentLength] = String(claimed)
        breaks = hasBody && claimed != length
      case .chunked where !request.isHTTP10:
        fields[.transferEncoding] = "chunked"
        isChunked = true
      case .chunked, .untilClose: closes = true
      }
    }
    if closes {
      fields.addIfAbsent(.connection, "close")
    } else if request.isHTTP10 {
      fields.addIfAbsent(.connection, "keep-alive")
    }
    let head = Self.head(response.status, fields)
    switch delivery.fault {
    case .closeMidHead: return addHalf(of: head, then: .close)
    case .resetMidHead: return addHalf(of: head, then: .reset)
    case .endlessHead: return addEndless(head)
    case .trickleHead(let pause): steps.append(.trickle(head, isBody: false, every: pause))
    default: steps.append(.head(head, isNotModified: response.status == .notModified))
    }
    if hasBody {
      if delivery.bodyDelay > .zero { steps.append(.wait(delivery.bodyDelay)) }
      addBody(response.content, delivery, isChunked: isChunked)
    }
    if case .surplus(let bytes) = delivery.fault { steps.append(.bytes(ByteBuffer(bytes: bytes), isBody: false)) }
    if let end = Self.end(delivery.fault) {
      steps.append(end)
    } else if closes || breaks {
      steps.append(.close)
    }
  }

  /// Returns the framing of the body. A malformed chunk needs chunks, whatever the test has set.
  private static func framing(_ delivery: OriginDelivery) -> OriginFraming {
    guard case .malformedChunk = delivery.fault else { return delivery.framing }
    if case .chunked = delivery.framing { return delivery.framing }
    return .chunked()
  }

  private mutating func addEndless(_ head: ByteBuffer) {
    // The fields without the empty line that ends them.
    steps.append(.bytes(head.getSlice(at: head.readerIndex, length: head.readableBytes - 2) ?? head, isBody: false))
    let filler = (0..<64).map { "X-Endless-\($0): \(String(repeating: "x", count: 64))\r\n" }.joined()
    steps.append(.endless(ByteBuffer(string: filler)))
  }

  private mutating func addHalf(of head: ByteBuffer, then end: Step) {
    let statusLine = (head.readableBytesView.firstIndex(of: 0x0A) ?? head.readerIndex) + 1 - head.readerIndex
    let length = statusLine + (head.readableBytes - statusLine) / 2
    steps.append(.bytes(head.getSlice(at: head.readerIndex, length: length) ?? head, isBody: false))
    steps.append(end)
  }

  private static func end(_ fault: OriginFault?) -> Step? {
    switch fault {
    case .cut, .malformedChunk, .closeAfterwards: .close
    case .reset: .reset
    case .stall: .stall
    default: nil
    }
  }

  /// The number of body bytes sent before the fault, or `nil` without a fault.
  private static func limit(_ fault: OriginFault?) -> Int? {
    switch fault {
    case .cut(let bytes), .reset(let bytes), .stall(let bytes), .malformedChunk(let bytes): max(0, bytes)
    default: nil
    }
  }

  // MARK: The body

  private mutating func addBody(_ content: ByteBuffer, _ delivery: OriginDelivery, isChunked: Bool) {
    let limit = Self.limit(delivery.fault)
    var length = content.readableBytes
    var isMalformed = false
    if case .malformedChunk(let bytes) = delivery.fault {
      // The chunks before the malformed one are complete, so that it alone causes the failure.
      length = min(length, max(0, bytes))
      isMalformed = true
    }
    let stop = min(length, limit ?? length)
    var chunkSize = max(1, length)
    if isChunked, case .chunked(let size) = delivery.framing { chunkSize = max(1, size) }
    var gate = delivery.bodyGate.map { (gate: $0, offset: min(max(0, delivery.bodyGateOffset), length)) }
    var offset = 0
    while offset < stop {
      // The chunk header states the full size even if the fault cuts the chunk, so that the client can detect the cut.
      let chunkEnd = offset + min(chunkSize, length - offset)
      if isChunked { addFraming(String(chunkEnd - offset, radix: 16) + "\r\n") }
      let partEnd = min(chunkEnd, stop)
      while offset < partEnd {
        if let held = gate, held.offset == offset {
          steps.append(.hold(held.gate))
          gate = nil
        }
        var end = partEnd
        if let held = gate, held.offset > offset { end = min(end, held.offset) }
        if let slice = content.getSlice(at: content.readerIndex + offset, length: end - offset) {
          if case .trickle(let pause) = delivery.fault {
            steps.append(.trickle(slice, isBody: true, every: pause))
          } else {
            steps.append(.bytes(slice, isBody: true))
          }
        }
        offset = end
      }
      if isChunked, offset == chunkEnd { addFraming("\r\n") }
    }
    if let held = gate, held.offset <= stop { steps.append(.hold(held.gate)) }
    if isMalformed, isChunked { addFraming("no size\r\nno chunk\r\n") }
    if isChunked, limit == nil { addFraming("0\r\n\r\n") }
  }

  private mutating func addFraming(_ text: String) { steps.append(.bytes(ByteBuffer(string: text), isBody: false)) }

  // MARK: Heads

  static func head(_ status: HTTPResponse.Status, _ fields: HTTPFields) -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.writeString("HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\n")
    for field in fields {
      buffer.writeString(field.name.rawName)
      buffer.writeStaticString(": ")
      field.withUnsafeBytesOfValue { _ = buffer.writeBytes($0) }
      buffer.writeStaticString("\r\n")
    }
    buffer.writeStaticString("\r\n")
    return buffer
  }
}

extension HTTPFields {
  mutating func addIfAbsent(_ name: HTTPField.Name, _ value: String) {
    if !contains(name) { self[name] = value }
  }
}
#endif
