internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension DownloaderContract {
  /// Statements about response bodies.
  static let responses: [Case] = [
    Case("a body of any size arrives unchanged") { downloader, origin in
      for size in [0, 1, 1_000, 70_000, 1_000_000] {
        let body = StoreContract.bytes(size)
        let url = try await origin.serve(ContractResponse(body: body))
        let response = try await get(url, from: downloader)
        try ContractViolation.expectEqual(response.head.status.code, 200, "the status")
        try ContractViolation.expectEqual(response.body.length, Int64(size), "the declared length")
        try ContractViolation.expect(try await response.body.collect() == body, "\(size) bytes differ")
      }
    },
    Case("a body without a declared length arrives completely") { downloader, origin in
      for size in [0, 200_000] {
        let body = StoreContract.bytes(size)
        let url = try await origin.serve(ContractResponse(body: body, framing: .chunks))
        let response = try await get(url, from: downloader)
        try ContractViolation.expectEqual(response.body.length, nil, "the declared length")
        try ContractViolation.expect(try await response.body.collect() == body, "\(size) bytes differ")
      }
    },
    Case("a body that ends with its connection arrives completely") { downloader, origin in
      let body = StoreContract.bytes(100_000)
      let url = try await origin.serve(ContractResponse(body: body, framing: .connection))
      let response = try await get(url, from: downloader)
      try ContractViolation.expectEqual(response.body.length, nil, "the declared length")
      try ContractViolation.expect(try await response.body.collect() == body, "the received bytes differ")
    },
    Case("a body arrives in order, in nonempty chunks, up to the declared length") { downloader, origin in
      let body = StoreContract.bytes(2_000_000)
      for framing in [ContractResponse.Framing.length, .chunks] {
        let url = try await origin.serve(ContractResponse(body: body, framing: framing))
        var position = 0
        for try await chunk in try await get(url, from: downloader).body {
          try ContractViolation.expect(!chunk.isEmpty, "an empty chunk arrived after \(position) bytes")
          let end = position + chunk.count
          try ContractViolation.expect(end <= body.count && chunk == body[position..<end], "the bytes after \(position) differ")
          position = end
        }
        try ContractViolation.expectEqual(position, body.count, "received bytes")
      }
    },
    Case("the first bytes can be read while the origin holds back the rest") { downloader, origin in
      for framing in [ContractResponse.Framing.length, .chunks] {
        let gate = Gate()
        let body = StoreContract.bytes(200_000)
        let url = try await origin.serve(ContractResponse(body: body, framing: framing, bodyGate: gate))
        let response = try await whileClosed(gate) { try await get(url, from: downloader) }
        // A double holds its whole body at the gate, because it has no wire.
        if !origin.hasSockets { gate.open() }
        var iterator = response.body.makeAsyncIterator()
        guard var whole = try await whileClosed(gate, { try await iterator.next() }) else {
          throw ContractViolation("the body has no first chunk")
        }
        gate.open()
        while let chunk = try await iterator.next() { whole.append(chunk) }
        try ContractViolation.expect(whole == body, "the received bytes differ")
      }
    },
    Case("parallel requests for different URLs receive their own bodies") { downloader, origin in
      var urls: [URL] = []
      for index in 0..<60 {
        urls.append(try await origin.serve(ContractResponse(body: StoreContract.bytes(3_000, seed: UInt64(index)))))
      }
      try await withThrowingTaskGroup(of: (Int, Data).self) { group in
        for (index, url) in urls.enumerated() {
          group.addTask { (index, try await bytes(of: url, from: downloader)) }
        }
        for try await (index, data) in group {
          try ContractViolation.expect(data == StoreContract.bytes(3_000, seed: UInt64(index)), "URL \(index): wrong bytes")
        }
      }
    },
    Case("a compressed body is delivered decoded with matching fields, or unchanged") { downloader, origin in
      let url = try await origin.serve(
        ContractResponse(fields: [.contentEncoding: "gzip", .eTag: "\"z\""], body: Data(GzipSample.encoded)))
      let response = try await get(url, from: downloader)
      let isRaw = response.head.headerFields[.contentEncoding] != nil
      let expected = isRaw ? Data(GzipSample.encoded) : Data(GzipSample.decoded)
      try ContractViolation.expect(
        try await response.body.collect() == expected, "the body is not \(isRaw ? "compressed" : "decoded") as declared")
      if !isRaw {
        try ContractViolation.expectEqual(response.head.headerFields[.contentLength], nil, "Content-Length of a decoded body")
      }
      let metrics = response.metrics()
      try ContractViolation.expectEqual(metrics.bytesDecoded, Int64(expected.count), "bytes after decoding")
      try ContractViolation.expectEqual(metrics.bytesOnWire, Int64(GzipSample.encoded.count), "bytes on the wire")
    },
    Case("a response has metrics") { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractResponse(body: StoreContract.bytes(50_000), bodyGate: gate))
      let response = try await get(url, from: downloader)
      try ContractViolation.expectEqual(response.metrics().total, nil, "the total time before the end of the body")
      gate.open()
      _ = try await response.body.collect()
      let metrics = response.metrics()
      guard let timeToHead = metrics.timeToHead, let total = metrics.total else {
        throw ContractViolation("the time to the head or the total time is missing: \(metrics)")
      }
      try ContractViolation.expect(
        timeToHead >= .zero && timeToHead <= total, "the time to the head is \(timeToHead), the total time \(total)")
      try ContractViolation.expectEqual(metrics.bytesOnWire, 50_000, "bytes on the wire")
      try ContractViolation.expectEqual(metrics.bytesDecoded, 50_000, "bytes after decoding")
      try ContractViolation.expectEqual(metrics.attempts, 1, "attempts")
      try ContractViolation.expectEqual(metrics.redirects, 0, "redirects")
    },
    Case("raising the priority during or after a transfer does not change the response") { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractResponse(body: Data("urgent".utf8), gate: gate))
      let priority = LoadPriority(.veryLow)
      let request = DownloadRequest(head: try HTTPRequest(resource: url), priority: priority)
      async let response = downloader.download(request)
      await gate.arrived()
      for level in LoadPriority.Level.allCases { priority.raise(to: level) }
      gate.open()
      try ContractViolation.expect(try await response.body.collect() == Data("urgent".utf8), "the received bytes differ")
      priority.raise(to: .veryHigh)
    },
  ]
}

extension DownloaderContract {
  private static let statuses = [
    200, 201, 202, 203, 204, 205, 206, 299, 300, 301, 302, 303, 307, 308, 400, 402, 403, 404, 405, 406, 408, 409, 410, 412, 413,
    416,
    418, 421, 425, 429, 451, 499, 500, 501, 502, 503, 504, 505, 599,
  ]

  /// Statements about statuses and fields.
  static let heads: [Case] = [
    Case("every status is delivered as a response") { downloader, origin in
      for status in statuses {
        var fields = HTTPFields()
        if (300..<400).contains(status) { fields[.location] = "http://127.0.0.1:9/elsewhere" }
        let url = try await origin.serve(ContractResponse(status: .init(code: status), fields: fields))
        let response = try await get(url, from: downloader)
        try ContractViolation.expectEqual(response.head.status.code, status, "the status")
        _ = try await response.body.collect()
      }
    },
    Case("the body of an error response arrives unchanged") { downloader, origin in
      for status in [401, 404, 500] {
        let body = StoreContract.bytes(20_000)
        let url = try await origin.serve(ContractResponse(status: .init(code: status), body: body))
        try ContractViolation.expect(try await bytes(of: url, from: downloader) == body, "the body of a \(status) differs")
      }
    },
    Case("redirects are not followed") { downloader, origin in
      for status in [301, 302, 303, 307, 308] {
        let target = try await origin.serve(ContractResponse(body: Data("elsewhere".utf8)))
        let url = try await origin.serve(
          ContractResponse(status: .init(code: status), fields: [.location: target.absoluteString], body: Data("moved".utf8)))
        let response = try await get(url, from: downloader)
        try ContractViolation.expectEqual(response.head.status.code, status, "the status")
        try ContractViolation.expectEqual(response.head.headerFields[.location], target.absoluteString, "Location")
        _ = try await response.body.collect()
        try ContractViolation.expectEqual(await origin.received(at: target).count, 0, "requests for the target of a \(status)")
      }
    },
    Case("a redirect to itself or without a target is delivered as a response") { downloader, origin in
      for location in ["?again", nil] {
        var fields = HTTPFields()
        fields[.location] = location
        let url = try await origin.serve(ContractResponse(status: .found, fields: fields))
        let response = try await get(url, from: downloader)
        try ContractViolation.expectEqual(response.head.status.code, 302, "the status")
        _ = try await response.body.collect()
        try ContractViolation.expectEqual(await origin.received(at: url).count, 1, "requests")
      }
    },
    Case("a 401 to a request without credentials is delivered as a response") { downloader, origin in
      for challenge in ["Basic realm=\"contract\"", "Digest realm=\"contract\", nonce=\"n\", qop=\"auth\"", "Bearer", nil] {
        var fields = HTTPFields()
        fields[.wwwAuthenticate] = challenge
        let url = try await origin.serve(ContractResponse(status: .unauthorized, fields: fields, body: Data("who?".utf8)))
        let response = try await get(url, from: downloader)
        try ContractViolation.expectEqual(response.head.status.code, 401, "the status")
        try ContractViolation.expect(try await response.body.collect() == Data("who?".utf8), "the body of the 401 differs")
      }
    },
    Case("a 401 to a request with credentials is delivered, and correct credentials succeed") { downloader, origin in
      let fields: HTTPFields = [.wwwAuthenticate: "Basic realm=\"contract\""]
      let url = try await origin.serve([
        ContractResponse(status: .unauthorized, fields: fields, body: Data("no".utf8)), ContractResponse(body: Data("in".utf8)),
      ])
      for (status, body) in [(401, "no"), (200, "in")] {
        let response = try await get(url, [.authorization: "Basic dTpw"], from: downloader)
        try ContractViolation.expectEqual(response.head.status.code, status, "the status")
        try ContractViolation.expect(try await response.body.collect() == Data(body.utf8), "the body of the \(status) differs")
      }
      let sent = await origin.received(at: url)
      try ContractViolation.expectEqual(
        sent.map { $0.head.headerFields[.authorization] }, ["Basic dTpw", "Basic dTpw"], "the received Authorization")
    },
    Case("conditional fields are sent unchanged, and a 304 is delivered without a body") { downloader, origin in
      let url = try await origin.serve(
        ContractResponse(status: .notModified, fields: [.eTag: "W/\"a, b\"", .cacheControl: "max-age=5"]))
      let response = try await get(url, [.ifNoneMatch: "W/\"a, b\"", .cacheControl: "max-age=0"], from: downloader)
      try ContractViolation.expectEqual(response.head.status.code, 304, "the status")
      try ContractViolation.expectEqual(response.head.headerFields[.eTag], "W/\"a, b\"", "the entity tag")
      try ContractViolation.expectEqual(response.head.headerFields[.cacheControl], "max-age=5", "Cache-Control")
      try ContractViolation.expectEqual(try await response.body.collect().count, 0, "the body bytes of a 304")
      let sent = await origin.received(at: url)
      try ContractViolation.expectEqual(sent.last?.head.headerFields[.ifNoneMatch], "W/\"a, b\"", "the received If-None-Match")
      try ContractViolation.expectEqual(sent.last?.head.headerFields[.cacheControl], "max-age=0", "the received Cache-Control")
    },
    Case("a response to HEAD has the fields of GET and no body") { downloader, origin in
      let url = try await origin.serve(ContractResponse(fields: [.eTag: "\"h\""], body: StoreContract.bytes(12_345)))
      let response = try await downloader.download(DownloadRequest(head: HTTPRequest(resource: url, method: .head)))
      try ContractViolation.expectEqual(response.head.status.code, 200, "the status")
      try ContractViolation.expectEqual(response.head.headerFields[.contentLength], "12345", "Content-Length")
      try ContractViolation.expectEqual(response.head.headerFields[.eTag], "\"h\"", "the entity tag")
      try ContractViolation.expectEqual(try await response.body.collect().count, 0, "the body bytes")
      try await expectSound(downloader, origin)
    },
    Case("interim responses are no part of the response, and are reported in order if at all", needs: [.sockets]) {
      downloader, origin in
      let hints: HTTPFields = [.eTag: "\"interim\"", .contentLanguage: "la"]
      let url = try await origin.serve(
        ContractResponse(
          fields: [.eTag: "\"final\""], body: Data("final".utf8),
          interim: [
            HTTPResponse(status: .init(code: 102)), HTTPResponse(status: .earlyHints, headerFields: hints),
            HTTPResponse(status: .earlyHints, headerFields: hints),
          ]))
      let reported = Lock<[HTTPResponse]>([])
      var request = DownloadRequest(head: try HTTPRequest(resource: url))
      request.onInterimResponse = { head in reported.withLock { $0.append(head) } }
      let response = try await downloader.download(request)
      try ContractViolation.expectEqual(response.head.status.code, 200, "the status")
      let interim = reported.withLock { $0 }
      if !interim.isEmpty {
        try ContractViolation.expectEqual(interim.map(\.status.code), [102, 103, 103], "the reported interim responses")
        try ContractViolation.expectEqual(interim.last?.headerFields[.contentLanguage], "la", "a field of an interim response")
      }
      try ContractViolation.expectEqual(response.head.headerFields[.eTag], "\"final\"", "the entity tag")
      try ContractViolation.expectEqual(response.head.headerFields[.contentLanguage], nil, "a field of an interim response")
      try ContractViolation.expect(try await response.body.collect() == Data("final".utf8), "the received bytes differ")
    },
    Case("field names of a response are case-insensitive") { downloader, origin in
      let fields: HTTPFields = [.eTag: "\"x\"", .cacheControl: "max-age=60, immutable", .init("X-Own") ?? .age: "1"]
      let url = try await origin.serve(ContractResponse(fields: fields, body: Data("x".utf8)))
      let head = try await get(url, from: downloader).head
      for field in fields {
        try ContractViolation.expectEqual(head.headerFields[field.name], field.value, "the field \(field.name)")
      }
    },
    Case("a repeated field preserves all values in order") { downloader, origin in
      var fields = HTTPFields()
      for value in ["Accept", "Origin", "Accept-Language"] { fields.append(HTTPField(name: .vary, value: value)) }
      for value in ["max-age=1", "must-revalidate"] { fields.append(HTTPField(name: .cacheControl, value: value)) }
      let url = try await origin.serve(ContractResponse(fields: fields, body: Data("x".utf8)))
      let head = try await get(url, from: downloader).head
      try ContractViolation.expectEqual(head.headerFields[.vary], "Accept, Origin, Accept-Language", "Vary")
      try ContractViolation.expectEqual(head.headerFields[.cacheControl], "max-age=1, must-revalidate", "Cache-Control")
    },
  ]
}
