internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension DownloaderContract {
  /// What equal requests share, and what they must not.
  static let sharing: [Case] = [
    Case("equal requests share one transfer, asked for from ten threads at once", needs: [.sharing]) { downloader, origin in
      let gate = Gate()
      let body = StoreContract.bytes(300_000)
      let url = try await origin.serve(ContractAnswer(body: body, gate: gate))
      let executors = (0..<10).map { QueueExecutor("contract.sharing.\($0)") }
      let started = WatchedState(0)
      let tasks = (0..<200).map { index in
        Task(executorPreference: executors[index % executors.count]) {
          started.update { $0 += 1 }
          return try await bytes(of: url, from: downloader)
        }
      }
      await gate.arrived()
      await started.wait { $0 == 200 }
      gate.open()
      for task in tasks {
        try ContractViolation.expect(try await task.value == body, "one of those who share got other bytes")
      }
      // Each thread may have been on its way into its last request when the answer came, and have asked anew.
      let count = await origin.received(at: url).count
      try ContractViolation.expect(count <= 1 + executors.count, "200 equal requests were sent \(count) times")
    },
    Case("equal requests that wait for one answer are one request", needs: [.sharing]) { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractAnswer(body: Data("one".utf8), bodyGate: gate))
      let first = try await get(url, from: downloader)
      for _ in 0..<50 {
        // Each returns at the head, which has come: no answer is awaited that could not be shared.
        let next = try await get(url, from: downloader)
        try ContractViolation.expectEqual(next.head.status, first.head.status, "the status")
      }
      let last = try await get(url, from: downloader)
      gate.open()
      for response in [first, last] {
        try ContractViolation.expect(try await response.body.collect() == Data("one".utf8), "the bytes arrived changed")
      }
      try ContractViolation.expectEqual(await origin.received(at: url).count, 1, "requests")
    },
    Case("one of several sharers that is cancelled fails alone") { downloader, origin in
      let gate = Gate()
      let body = StoreContract.bytes(300_000)
      let url = try await origin.serve(ContractAnswer(body: body, bodyGate: gate))
      var responses: [DownloadResponse] = []
      for _ in 0..<3 { responses.append(try await get(url, from: downloader)) }
      responses[1].body.source.cancel()
      let error = try await failure("a cancelled share") { _ = try await responses[1].body.collect() }
      try ContractViolation.expect(error.isCancellation, "a cancelled share is \(error)")
      gate.open()
      for response in [responses[0], responses[2]] {
        try ContractViolation.expect(try await response.body.collect() == body, "a sharer that stayed got other bytes")
      }
    },
    Case("one of several who wait for a head and is cancelled fails alone") { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractAnswer(body: Data("head".utf8), gate: gate))
      let tasks = (0..<5).map { _ in Task { try await bytes(of: url, from: downloader) } }
      await gate.arrived()
      tasks[2].cancel()
      if origin.hasSockets {
        let error = try await failure("a cancelled download") { _ = try await tasks[2].value }
        try ContractViolation.expect(error.isCancellation, "a cancelled download is \(error)")
      }
      gate.open()
      for (index, task) in tasks.enumerated() where index != 2 {
        try ContractViolation.expect(try await task.value == Data("head".utf8), "a sharer that stayed got other bytes")
      }
    },
    Case("requests that may not share are sent each") { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractAnswer(body: Data("own".utf8), gate: gate))
      let tasks = (0..<3).map { _ in Task { try await get(url, mayShare: false, from: downloader).body.collect() } }
      await gate.arrived(3)
      gate.open()
      for task in tasks { try ContractViolation.expect(try await task.value == Data("own".utf8), "the bytes arrived changed") }
      try ContractViolation.expectEqual(await origin.received(at: url).count, 3, "requests")
    },
    Case("requests that differ in a field, or that change something, are not shared") { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractAnswer(body: Data("own".utf8), gate: gate))
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
      for task in tasks { try ContractViolation.expect(try await task.value == Data("own".utf8), "the bytes arrived changed") }
      try ContractViolation.expectEqual(await origin.received(at: url).count, 4, "requests")
    },
  ]
}
