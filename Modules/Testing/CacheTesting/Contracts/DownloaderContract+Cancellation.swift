internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension DownloaderContract {
  private static func expectCancelled(_ what: String, _ operation: () async throws -> Void) async throws {
    let error = try await failure(what, operation)
    try ContractViolation.expect(error.isCancellation, "the error of \(what) is \(error)")
  }

  /// Statements about cancellation in every phase.
  static let cancellation: [Case] = [
    Case("a task that is already cancelled sends nothing") { downloader, origin in
      let url = try await origin.serve(ContractResponse(body: Data("never".utf8)))
      let gate = Gate()
      let waiting = Task {
        await gate.pass()
        return try await bytes(of: url, from: downloader)
      }
      waiting.cancel()
      gate.open()
      try await expectCancelled("a download of a cancelled task") { _ = try await waiting.value }
      try ContractViolation.expectEqual(await origin.received(at: url).count, 0, "requests of a cancelled task")
    },
    Case("cancelling the task that waits for the head cancels the download") { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractResponse(body: Data("late".utf8), gate: gate))
      let waiting = Task { try await get(url, from: downloader) }
      await gate.arrived()
      waiting.cancel()
      try await expectCancelled("a cancelled download") { _ = try await waiting.value }
      // The origin no longer holds the response, because it has noticed the cancellation.
      await gate.emptied()
    },
    Case("cancelling the task that reads the body cancels the body") { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractResponse(body: StoreContract.bytes(300_000), bodyGate: gate))
      let response = try await get(url, from: downloader)
      let reading = Task { try await response.body.collect() }
      await gate.arrived()
      reading.cancel()
      try await expectCancelled("a body whose reader was cancelled") { _ = try await reading.value }
      await gate.emptied()
    },
    Case("a cancelled request can be repeated") { downloader, origin in
      let gate = Gate()
      let body = StoreContract.bytes(50_000)
      let url = try await origin.serve([ContractResponse(body: body, gate: gate), ContractResponse(body: body)])
      let waiting = Task { try await get(url, from: downloader) }
      await gate.arrived()
      waiting.cancel()
      // The next request starts after the end of the cancelled one. Before that end, an equal request may join the
      // cancelled transfer, which is allowed.
      try await expectCancelled("a cancelled download") { _ = try await waiting.value }
      let again = try await bytes(of: url, from: downloader)
      try ContractViolation.expect(again == body, "the repeated request received wrong bytes")
    },
    Case("a body that is cancelled unread throws, and the next request succeeds") { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractResponse(body: StoreContract.bytes(300_000), bodyGate: gate))
      let response = try await get(url, from: downloader)
      response.body.source.cancel()
      gate.open()
      try await expectCancelled("a cancelled body") { _ = try await response.body.collect() }
      try await expectSound(downloader, origin)
    },
    Case("a response that is rejected after its head is not downloaded", needs: [.sockets]) { downloader, origin in
      for letsGo in [false, true] {
        let gate = Gate()
        // Half of the body fits into the socket buffers, so the origin reaches the gate even if the body is not read.
        let size = 64 << 10
        let url = try await origin.serve(ContractResponse(body: Data(count: size), bodyGate: gate))
        var response: DownloadResponse? = try await get(url, from: downloader)
        await gate.arrived()
        if !letsGo { response?.body.source.cancel() }
        // Or dropped unread, without an explicit cancellation.
        response = nil
        // The gate becomes empty only when the client closes the connection while the second half is held back.
        await gate.emptied()
        let sent = await origin.bodyBytesSent(at: url) ?? 0
        try ContractViolation.expect(sent <= size / 2, "\(sent) of \(size) bytes were sent for a rejected response")
      }
      try await expectSound(downloader, origin)
    },
    Case("cancellation at any time ends a download once and affects no other") { downloader, origin in
      let body = StoreContract.bytes(60_000)
      let url = try await origin.serve(ContractResponse(body: body))
      try await withThrowingTaskGroup(of: Void.self) { group in
        for index in 0..<100 {
          group.addTask {
            let load = Task { try await get(url, from: downloader).body.collect() }
            if index % 2 == 0 {
              for _ in 0..<index { await Task.yield() }
              load.cancel()
            }
            do {
              try ContractViolation.expect(try await load.value == body, "download \(index) received wrong bytes")
            } catch let error as CacheError where error.isCancellation && index % 2 == 0 {}
          }
        }
        try await group.waitForAll()
      }
      try await expectSound(downloader, origin)
    },
  ]
}

extension DownloaderContract {
  /// Statements about timeouts. These run in real time, because they are about pace on a wire.
  static let time: [Case] = [
    Case("silence before the head causes an idle timeout", needs: [.sockets]) { downloader, origin in
      let url = try await origin.serve(ContractResponse(ending: .stallBeforeHead))
      let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(1))
      try await expectFailure("a server that never responds", of: request, with: [.timedOut], from: downloader)
      try await expectSound(downloader, origin)
    },
    Case("silence within the body causes an idle timeout", needs: [.sockets]) { downloader, origin in
      for framing in [ContractResponse.Framing.length, .chunks] {
        let contractResponse = ContractResponse(body: StoreContract.bytes(1_000), framing: framing, ending: .stall(after: 100))
        let url = try await origin.serve(contractResponse)
        let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(1))
        try await expectFailure("a server that stops sending", of: request, with: [.timedOut], from: downloader)
      }
    },
    Case("a body that trickles forever causes a total timeout", needs: [.sockets]) { downloader, origin in
      let contractResponse = ContractResponse(body: StoreContract.bytes(20_000), ending: .trickle(every: .milliseconds(50)))
      let url = try await origin.serve(contractResponse)
      let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(3_600), timeout: .seconds(1))
      try await expectFailure("a body that trickles", of: request, with: [.timedOut], from: downloader)
      try await expectSound(downloader, origin)
    },
    Case("a server that never responds, or sends single bytes, causes a total timeout", needs: [.sockets]) { downloader, origin in
      for ending in [ContractResponse.Ending.stallBeforeHead, .trickleHead(every: .seconds(1))] {
        let url = try await origin.serve(ContractResponse(ending: ending))
        let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(3_600), timeout: .seconds(1))
        try await expectFailure("a server that does not respond", of: request, with: [.timedOut], from: downloader)
      }
    },
    Case("a head that arrives byte by byte is delivered", needs: [.sockets]) { downloader, origin in
      let body = StoreContract.bytes(1_000)
      let url = try await origin.serve(
        ContractResponse(fields: [.eTag: "\"slow\""], body: body, ending: .trickleHead(every: .milliseconds(2))))
      let response = try await get(url, from: downloader)
      try ContractViolation.expectEqual(response.head.headerFields[.eTag], "\"slow\"", "the entity tag")
      try ContractViolation.expect(try await response.body.collect() == body, "the received bytes differ")
    },
    Case("a body with short pauses does not cause an idle timeout", needs: [.sockets]) { downloader, origin in
      let body = StoreContract.bytes(100)
      let url = try await origin.serve(ContractResponse(body: body, ending: .trickle(every: .milliseconds(250))))
      // Less than the whole body takes, and much more than a pause, so that a busy machine does not cause a timeout.
      let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(20))
      let received = try await downloader.download(request).body.collect()
      try ContractViolation.expect(received == body, "\(received.count) of \(body.count) bytes arrived, or they differ")
    },
    Case("a slow reader does not cause an idle timeout", needs: [.sockets]) { downloader, origin in
      let body = StoreContract.bytes(8 << 20)
      let url = try await origin.serve(ContractResponse(body: body))
      let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(20))
      let response = try await downloader.download(request)
      var iterator = response.body.makeAsyncIterator()
      guard var whole = try await iterator.next() else { throw ContractViolation("the body has no first chunk") }
      try await Task.sleep(for: .seconds(25))
      while let chunk = try await iterator.next() { whole.append(chunk) }
      try ContractViolation.expect(whole == body, "\(whole.count) of \(body.count) bytes arrived, or they differ")
    },
    Case("a timeout that does not expire has no effect") { downloader, origin in
      let body = StoreContract.bytes(100_000)
      let url = try await origin.serve(ContractResponse(body: body))
      let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(60), timeout: .seconds(90))
      try ContractViolation.expect(try await downloader.download(request).body.collect() == body, "the received bytes differ")
    },
  ]
}

extension DownloaderContract {
  /// Statements about concurrent requests. A downloader sends each of them, because only a cache knows which requests
  /// may share a response.
  static let concurrency: [Case] = [
    Case("cancelling one of several equal requests does not affect the others") { downloader, origin in
      let gate = Gate()
      let body = StoreContract.bytes(300_000)
      let url = try await origin.serve(ContractResponse(body: body, bodyGate: gate))
      var responses: [DownloadResponse] = []
      for _ in 0..<3 { responses.append(try await get(url, from: downloader)) }
      responses[1].body.source.cancel()
      let error = try await failure("a cancelled request") { _ = try await responses[1].body.collect() }
      try ContractViolation.expect(error.isCancellation, "the error of a cancelled request is \(error)")
      gate.open()
      for response in [responses[0], responses[2]] {
        try ContractViolation.expect(try await response.body.collect() == body, "another request received wrong bytes")
      }
    },
    Case("cancelling one of several equal requests before its head does not affect the others") { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractResponse(body: Data("head".utf8), gate: gate))
      let tasks = (0..<5).map { _ in Task { try await bytes(of: url, from: downloader) } }
      await gate.arrived()
      tasks[2].cancel()
      if origin.hasSockets {
        let error = try await failure("a cancelled download") { _ = try await tasks[2].value }
        try ContractViolation.expect(error.isCancellation, "the error of a cancelled download is \(error)")
      }
      gate.open()
      for (index, task) in tasks.enumerated() where index != 2 {
        try ContractViolation.expect(try await task.value == Data("head".utf8), "another request received wrong bytes")
      }
    },
    Case("each of several equal requests is sent") { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractResponse(body: Data("own".utf8), gate: gate))
      let tasks = (0..<3).map { _ in Task { try await get(url, from: downloader).body.collect() } }
      await gate.arrived(3)
      gate.open()
      for task in tasks { try ContractViolation.expect(try await task.value == Data("own".utf8), "the received bytes differ") }
      try ContractViolation.expectEqual(await origin.received(at: url).count, 3, "requests")
    },
    Case("each of several requests with different fields or methods is sent") { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractResponse(body: Data("own".utf8), gate: gate))
      let heads = [
        HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil, headerFields: [.acceptLanguage: "de"]),
        HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil, headerFields: [.acceptLanguage: "en"]),
        HTTPRequest(method: .post, scheme: nil, authority: nil, path: nil),
        HTTPRequest(method: .post, scheme: nil, authority: nil, path: nil),
      ]
      let tasks = try heads.map { head in
        let request = try HTTPRequest(resource: url, method: head.method, headerFields: head.headerFields)
        return Task { try await downloader.download(DownloadRequest(head: request)).body.collect() }
      }
      await gate.arrived(4)
      gate.open()
      for task in tasks { try ContractViolation.expect(try await task.value == Data("own".utf8), "the received bytes differ") }
      try ContractViolation.expectEqual(await origin.received(at: url).count, 4, "requests")
    },
  ]
}

extension DownloaderContract {
  private static func connections(at urls: [URL], _ origin: any ContractOrigin) async -> Int {
    var numbers: Set<Int> = []
    for url in urls { numbers.formUnion(await origin.received(at: url).compactMap(\.connection)) }
    return numbers.count
  }

  /// Statements about connections that are reused or closed.
  static let connections: [Case] = [
    Case("consecutive requests reuse their connection", needs: [.sockets]) { downloader, origin in
      let url = try await origin.serve(ContractResponse(body: StoreContract.bytes(5_000)))
      for _ in 0..<10 { _ = try await bytes(of: url, from: downloader) }
      // More than one is allowed: the last bytes may be read before the connection is available for the next request.
      // On a busy machine, this happens more than once.
      let count = await connections(at: [url], origin)
      try ContractViolation.expect(count < 10, "10 requests used \(count) connections")
    },
    Case("an idle connection that the server closes is replaced, or its loss is reported", needs: [.sockets]) {
      downloader, origin in
      for ending in [ContractResponse.Ending.closesAfterwards, .complete] {
        // The second request finds the connection closed, or is sent while it closes.
        let fails = ContractResponse(body: Data("2".utf8), ending: ending == .complete ? .closeBeforeHead : .complete)
        for _ in 0..<5 {
          let url = try await origin.serve([
            ContractResponse(body: Data("1".utf8), ending: ending), fails, ContractResponse(body: Data("3".utf8)),
          ])
          try ContractViolation.expect(try await bytes(of: url, from: downloader) == Data("1".utf8), "the first request")
          do {
            let second = try await bytes(of: url, from: downloader)
            try ContractViolation.expect(
              second == Data("2".utf8) || second == Data("3".utf8), "the second request received wrong bytes")
          } catch let error as CacheError {
            try ContractViolation.expectEqual(
              error.code.rawValue, CacheError.Code.connectionLost.rawValue, "the error of a closed connection")
          }
          try ContractViolation.expect(try await bytes(of: url, from: downloader) == Data("3".utf8), "the third request")
        }
      }
    },
    Case("an unsafe request is not repeated automatically", needs: [.sockets]) { downloader, origin in
      // A server may close a new connection after it has processed the request (RFC 9110 §9.2.2).
      let url = try await origin.serve([ContractResponse(ending: .closeBeforeHead), ContractResponse(body: Data("twice".utf8))])
      let warm = try await origin.serve(ContractResponse(fields: [.connection: "close"], body: Data("x".utf8)))
      _ = try await bytes(of: warm, from: downloader)
      let request = DownloadRequest(head: try HTTPRequest(resource: url, method: .post), body: ResourceBody(Data("once".utf8)))
      try await expectFailure("a POST without a response", of: request, with: [.connectionLost], from: downloader)
      try ContractViolation.expectEqual(await origin.received(at: url).count, 1, "received POST requests")
    },
    Case("undeclared bytes do not corrupt a later response", needs: [.sockets]) { downloader, origin in
      for _ in 0..<5 {
        let surplus = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
        let url = try await origin.serve(ContractResponse(ending: .raw(Data(surplus.utf8))))
        do {
          try ContractViolation.expect(try await bytes(of: url, from: downloader) == Data("ok".utf8), "the declared bytes")
        } catch let error as CacheError {
          try ContractViolation.expectEqual(
            error.code.rawValue, CacheError.Code.malformedResponse.rawValue, "the error of undeclared bytes")
        }
        try await expectSound(downloader, origin)
      }
    },
    Case("hundreds of requests use few connections, and each receives a response", needs: [.sockets]) { downloader, origin in
      let urls = try await withThrowingTaskGroup(of: URL.self) { group in
        for worker in 0..<5 {
          group.addTask {
            let body = StoreContract.bytes(2_000, seed: UInt64(worker))
            let url = try await origin.serve(ContractResponse(body: body))
            for _ in 0..<100 {
              try ContractViolation.expect(
                try await get(url, from: downloader).body.collect() == body, "a request received wrong bytes")
            }
            return url
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      let count = await connections(at: urls, origin)
      try ContractViolation.expect(count <= 100, "500 requests, 5 at a time, used \(count) connections")
    },
  ]
}
