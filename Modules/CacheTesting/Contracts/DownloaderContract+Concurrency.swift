internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
