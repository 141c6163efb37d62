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
          try ContractViolation.expect(
            end <= body.count && chunk == body[position..<end], "the bytes after \(position) differ")
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
        try ContractViolation.expectEqual(
          response.head.headerFields[.contentLength], nil, "Content-Length of a decoded body")
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
