internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension DownloaderContract {
  private static let limit = 20_000

  private static func collected(
    _ url: URL, _ method: HTTPRequest.Method = .get, sending body: ResourceBody? = nil, limit: Int = limit,
    from downloader: any Downloader
  ) async throws -> DownloadResponse {
    try await downloader.download(
      DownloadRequest(head: HTTPRequest(resource: url, method: method), body: body, collectUpTo: limit))
  }

  /// Statements about requests that permit the downloader to collect the body (`DownloadRequest.collectUpTo`). They hold for a
  /// downloader that ignores the permission too.
  static let collecting: [Case] = [
    Case("a body that may be collected arrives unchanged, with its length and metrics") { downloader, origin in
      for framing in [ContractResponse.Framing.length, .chunks] {
        for size in [0, 1, limit - 1, limit, limit + 1, 300_000] {
          let body = StoreContract.bytes(size)
          let url = try await origin.serve(ContractResponse(fields: [.eTag: "\"c\""], body: body, framing: framing))
          let response = try await collected(url, from: downloader)
          let what = "the body of \(size) bytes"
          try ContractViolation.expectEqual(response.head.headerFields[.eTag], "\"c\"", "the entity tag")
          if framing == .length || response.body.data != nil {
            try ContractViolation.expectEqual(response.body.length, Int64(size), "the declared length of \(what)")
          }
          try ContractViolation.expect(try await response.body.collect() == body, "\(what) differs")
          let metrics = response.metrics()
          try ContractViolation.expectEqual(metrics.bytesDecoded, Int64(size), "the decoded bytes of \(what)")
          guard let timeToHead = metrics.timeToHead, let total = metrics.total else {
            throw ContractViolation("the time to the head or the total time is missing: \(metrics)")
          }
          try ContractViolation.expect(timeToHead <= total, "the time to the head is \(timeToHead), the total time \(total)")
        }
      }
    },
    Case("a body up to the limit arrives in one piece with its head", needs: [.sockets, .collectedBodies]) { downloader, origin in
      for size in [0, 1, limit - 1, limit] {
        let body = StoreContract.bytes(size)
        let url = try await origin.serve(ContractResponse(body: body))
        for method in [HTTPRequest.Method.get, .post] {
          let sent = method == .post ? ResourceBody(StoreContract.bytes(50_000)) : nil
          let response = try await collected(url, method, sending: sent, from: downloader)
          try ContractViolation.expect(response.body.data == body, "the \(size) bytes after \(method) are not in one piece")
          try ContractViolation.expectEqual(response.metrics().bytesOnWire, Int64(size), "the received bytes")
        }
      }
    },
    Case("a body is collected although its second half arrives late", needs: [.sockets, .collectedBodies]) { downloader, origin in
      // More than a slow reader may leave unread.
      let (body, gate) = (StoreContract.bytes(400_000), Gate())
      let url = try await origin.serve(ContractResponse(body: body, bodyGate: gate))
      async let response = collected(url, limit: 1 << 20, from: downloader)
      await gate.arrived()
      gate.open()
      try ContractViolation.expect(try await response.body.data == body, "the body is not in one piece")
    },
    Case("a body that may be collected can also be read as a stream, once") { downloader, origin in
      let body = StoreContract.bytes(1_000)
      let source = try await collected(origin.serve(ContractResponse(body: body)), from: downloader).body.source
      var received = Data()
      while let chunk = try await source.next() { received.append(chunk) }
      try ContractViolation.expect(received == body, "the received bytes differ")
      try ContractViolation.expect(try await source.next() == nil, "bytes arrived after the end")
    },
    Case("a longer body, one of unknown length and that of an error are returned at the head", needs: [.sockets]) {
      downloader, origin in
      let responses: [ContractResponse] = [
        ContractResponse(body: StoreContract.bytes(limit + 1)),
        ContractResponse(body: StoreContract.bytes(limit), framing: .chunks),
        ContractResponse(status: .serviceUnavailable, body: StoreContract.bytes(limit)),
      ]
      for var response in responses {
        let gate = Gate()
        response.bodyGate = gate
        let url = try await origin.serve(response)
        let received = try await whileClosed(gate) { try await collected(url, from: downloader) }
        try ContractViolation.expectEqual(received.head.status.code, response.status.code, "the status")
        gate.open()
        try ContractViolation.expect(try await received.body.collect() == response.body, "the received bytes differ")
      }
    },
    Case("a response without a body is complete, whatever its head declares") { downloader, origin in
      for status in [HTTPResponse.Status.noContent, .notModified] {
        let url = try await origin.serve(ContractResponse(status: status, fields: [.eTag: "\"none\""]))
        let response = try await collected(url, from: downloader)
        try ContractViolation.expectEqual(response.head.status.code, status.code, "the status")
        try ContractViolation.expect(try await response.body.collect().isEmpty, "a \(status.code) has a body")
      }
      for size in [100, limit + 1] {
        let url = try await origin.serve(ContractResponse(body: StoreContract.bytes(size)))
        let response = try await collected(url, .head, from: downloader)
        try ContractViolation.expectEqual(response.head.headerFields[.contentLength], "\(size)", "Content-Length")
        try ContractViolation.expect(try await response.body.collect().isEmpty, "a response to HEAD has a body")
      }
      try await expectSound(downloader, origin)
    },
    Case("a body that fails while it may be collected has its head and the bytes before the failure") { downloader, origin in
      let body = StoreContract.bytes(limit)
      for bytes in [0, 8_000, limit - 1] {
        let url = try await origin.serve(ContractResponse(fields: [.eTag: "\"cut\""], body: body, ending: .cut(after: bytes)))
        let response = try await collected(url, from: downloader)
        try ContractViolation.expectEqual(response.head.headerFields[.eTag], "\"cut\"", "the entity tag")
        try ContractViolation.expectEqual(response.body.length, Int64(limit), "the declared length")
        var received = Data()
        let error = try await failure("a truncated body") {
          while let chunk = try await response.body.source.next() { received.append(chunk) }
        }
        try ContractViolation.expect([.truncatedBody, .connectionLost].contains(error.code), "the error is \(error)")
        try ContractViolation.expectEqual(received.count, bytes, "bytes before the cut")
        try ContractViolation.expect(received == body.prefix(bytes), "the bytes before the cut differ")
      }
    },
    Case("cancelling the task cancels a body that may be collected") { downloader, origin in
      for framing in [ContractResponse.Framing.length, .chunks] {
        let gate = Gate()
        let url = try await origin.serve(ContractResponse(body: StoreContract.bytes(limit), framing: framing, bodyGate: gate))
        let loading = Task { try await collected(url, from: downloader).body.collect() }
        await gate.arrived()
        loading.cancel()
        let error = try await failure("a cancelled download") { _ = try await loading.value }
        try ContractViolation.expect(error.isCancellation, "the error of a cancelled download is \(error)")
        await gate.emptied()
      }
      try await expectSound(downloader, origin)
    },
    Case("time limits apply to a body that may be collected", needs: [.sockets]) { downloader, origin in
      let body = StoreContract.bytes(1_000)
      let limits: [(idle: Duration, total: Duration?, ending: ContractResponse.Ending)] = [
        (.seconds(1), nil, .stall(after: 100)), (.seconds(3_600), .seconds(1), .trickle(every: .milliseconds(50))),
      ]
      for (idle, total, ending) in limits {
        let url = try await origin.serve(ContractResponse(body: body, ending: ending))
        let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: idle, timeout: total, collectUpTo: limit)
        try await expectFailure("a server that stops sending", of: request, with: [.timedOut], from: downloader)
      }
    },
  ]
}
