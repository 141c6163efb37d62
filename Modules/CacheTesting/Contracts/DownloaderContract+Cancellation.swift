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
