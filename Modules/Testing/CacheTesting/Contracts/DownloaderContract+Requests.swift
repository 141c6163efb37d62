internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension DownloaderContract {
  /// Statements about the requests that are sent.
  static let requests: [Case] = [
    Case("method, target and fields are sent unchanged") { downloader, origin in
      for method in [HTTPRequest.Method.get, .head, .post, .put, .patch, .delete, .options] {
        var url = try await origin.serve(ContractResponse())
        // The script of a double uses the whole URL.
        if origin.hasSockets { url.append(queryItems: [URLQueryItem(name: "q", value: "a b/ü")]) }
        let fields: HTTPFields = [
          .accept: "image/webp, */*;q=0.1", .acceptLanguage: "de", .userAgent: "Contract/1", .range: "bytes=0-9",
          .init("X-Own") ?? .te: "one, \"two\"",
        ]
        let request = try HTTPRequest(resource: url, method: method, headerFields: fields)
        _ = try await downloader.download(DownloadRequest(head: request)).body.collect()
        guard let sent = await origin.received(at: url).last?.head else { throw ContractViolation("no \(method) arrived") }
        try ContractViolation.expectEqual(sent.method, method, "the method")
        try ContractViolation.expectEqual(sent.path, request.path, "the target")
        try ContractViolation.expectEqual(sent.authority, request.authority, "the host")
        for field in fields {
          try ContractViolation.expectEqual(sent.headerFields[field.name], field.value, "the field \(field.name)")
        }
      }
    },
    Case("no field is added that would change the cached response") { downloader, origin in
      let url = try await origin.serve(ContractResponse())
      _ = try await bytes(of: url, from: downloader)
      let sent = await origin.received(at: url).last?.head.headerFields ?? [:]
      for name in [HTTPField.Name.cookie, .authorization, .ifNoneMatch, .ifModifiedSince, .range] {
        try ContractViolation.expectEqual(sent[name], nil, "the field \(name)")
      }
    },
    Case("a cookie from a response is not sent back") { downloader, origin in
      let url = try await origin.serve(ContractResponse(fields: [.setCookie: "secret=1; Path=/"], body: Data("x".utf8)))
      for _ in 0..<2 { _ = try await bytes(of: url, from: downloader) }
      let sent = await origin.received(at: url)
      try ContractViolation.expectEqual(sent.count, 2, "requests")
      try ContractViolation.expectEqual(sent.last?.head.headerFields[.cookie], nil, "Cookie")
    },
    Case("a request body of known length arrives unchanged, with its length") { downloader, origin in
      for (method, size) in [(HTTPRequest.Method.post, 1), (.put, 70_000), (.patch, 1_000_000), (.post, 0)] {
        let body = StoreContract.bytes(size)
        let url = try await origin.serve(ContractResponse(status: .created))
        let head = try HTTPRequest(resource: url, method: method, headerFields: [.contentType: "image/png"])
        let response = try await downloader.download(DownloadRequest(head: head, body: ResourceBody(body)))
        try ContractViolation.expectEqual(response.head.status.code, 201, "the status")
        _ = try await response.body.collect()
        guard let sent = await origin.received(at: url).last else { throw ContractViolation("no \(method) request arrived") }
        try ContractViolation.expect(sent.body == body, "a body of \(size) bytes arrived as \(sent.body.count) bytes or differs")
        try ContractViolation.expectEqual(sent.head.headerFields[.contentType], "image/png", "Content-Type")
        if origin.hasSockets {
          try ContractViolation.expectEqual(sent.head.headerFields[.contentLength], String(size), "Content-Length")
        }
      }
    },
    Case("a request body of unknown length arrives unchanged") { downloader, origin in
      for count in [0, 1, 300] {
        let chunks = (0..<count).map { StoreContract.bytes(1_000 + $0, seed: UInt64($0)) }
        let url = try await origin.serve(ContractResponse())
        let body = ResourceBody(length: nil, source: ChunkSource(chunks))
        let request = DownloadRequest(head: try HTTPRequest(resource: url, method: .post), body: body)
        _ = try await downloader.download(request).body.collect()
        let sent = await origin.received(at: url)
        try ContractViolation.expectEqual(sent.count, 1, "requests")
        try ContractViolation.expect(sent.last?.body == ChunkSource.whole(chunks), "the body of \(count) chunks differs")
      }
    },
    Case("a large request body arrives unchanged") { downloader, origin in
      let chunks = (0..<100).map { StoreContract.bytes(65_536, seed: UInt64($0)) }
      let url = try await origin.serve(ContractResponse())
      let body = ResourceBody(length: Int64(chunks.count * 65_536), source: ChunkSource(chunks))
      let request = DownloadRequest(head: try HTTPRequest(resource: url, method: .put), body: body)
      _ = try await downloader.download(request).body.collect()
      let sent = await origin.received(at: url).last
      try ContractViolation.expectEqual(sent?.body.count, chunks.count * 65_536, "received bytes")
      try ContractViolation.expect(sent?.body == ChunkSource.whole(chunks), "the body differs")
    },
    Case("a request body is sent while it is produced", needs: [.sockets, .streamingRequests]) { downloader, origin in
      let url = try await origin.serve(ContractResponse())
      let chunk = StoreContract.bytes(100_000)
      let source = ChunkSource(Array(repeating: chunk, count: 3)) { (index) async throws(CacheError) in
        guard index > 0 else { return }
        do {
          try await withBound(.seconds(600), "sending") { await origin.waitForRequestBody(at: url, bytes: index * 100_000) }
        } catch {
          throw CacheError(.other, reason: "chunk \(index) was requested before the previous one had arrived")
        }
      }
      let request = DownloadRequest(
        head: try HTTPRequest(resource: url, method: .post), body: ResourceBody(length: 300_000, source: source))
      _ = try await downloader.download(request).body.collect()
      try ContractViolation.expectEqual(await origin.received(at: url).last?.body.count, 300_000, "received bytes")
    },
    Case("the error of a request body becomes the request's error, and no complete request arrives") { downloader, origin in
      let url = try await origin.serve(ContractResponse())
      let source = ChunkSource([StoreContract.bytes(1_000), Data([1])]) { (index) async throws(CacheError) in
        if index == 1 { throw CacheError(.fileSystem, reason: "the file was removed") }
      }
      let request = DownloadRequest(
        head: try HTTPRequest(resource: url, method: .post), body: ResourceBody(length: nil, source: source))
      try await expectFailure("a request whose body fails", of: request, with: [.fileSystem], from: downloader)
      try ContractViolation.expectEqual(await origin.received(at: url).count, 0, "complete requests")
      try await expectSound(downloader, origin)
    },
    Case("an unsupported URL scheme fails with a specific error, and nothing is sent", needs: [.sockets]) { downloader, _ in
      for text in ["ftp://127.0.0.1/a", "file:///etc/hosts"] {
        guard let url = URL(string: text) else { throw ContractViolation("no URL: \(text)") }
        let error = try await failure(text) { _ = try await get(url, from: downloader) }
        try ContractViolation.expectEqual(error.code.rawValue, CacheError.Code.unsupportedScheme.rawValue, "the error of \(text)")
      }
    },
  ]
}
