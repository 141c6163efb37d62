internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
