internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension DownloaderContract {
  /// Statements about connections that fail or break.
  static let failures: [Case] = [
    Case("a truncated body is an error, with or without a declared length") { downloader, origin in
      for framing in [ContractResponse.Framing.length, .chunks] {
        for bytes in [0, 40_000, 99_999] {
          try await expectFailure(
            "a body of \(bytes) of 100,000 bytes",
            response: ContractResponse(body: StoreContract.bytes(100_000), framing: framing, ending: .cut(after: bytes)),
            // On some platforms, a close within the body is reported as a lost connection.
            with: [.truncatedBody, .connectionLost], from: downloader, origin)
        }
      }
    },
    Case("a body shorter than its declared length is an error", needs: [.sockets]) { downloader, origin in
      try await expectFailure(
        "1,000 bytes declared as 2,000",
        response: ContractResponse(body: StoreContract.bytes(1_000), framing: .claimed(2_000)),
        with: [.truncatedBody, .connectionLost], from: downloader, origin)
    },
    Case("the bytes before a cut arrive, and then every read throws the error") { downloader, origin in
      let body = StoreContract.bytes(100_000)
      let url = try await origin.serve(ContractResponse(body: body, ending: .cut(after: 40_000)))
      let source = try await get(url, from: downloader).body.source
      var received = Data()
      let error = try await failure("a truncated body") {
        while let chunk = try await source.next() { received.append(chunk) }
      }
      try ContractViolation.expect(received == body.prefix(received.count), "the bytes before the cut differ")
      try ContractViolation.expect(received.count <= 40_000, "\(received.count) bytes arrived instead of at most 40,000")
      let again = try await failure("a failed body") { _ = try await source.next() }
      try ContractViolation.expectEqual(again.code.rawValue, error.code.rawValue, "the error of a failed body")
    },
    Case("a connection reset before the head fails with a specific error") { downloader, origin in
      try await expectFailure(
        "a reset", response: ContractResponse(ending: .resetBeforeHead), with: [.connectionLost], from: downloader, origin)
    },
    Case("a connection closed before the head fails with a specific error") { downloader, origin in
      try await expectFailure(
        "a close", response: ContractResponse(ending: .closeBeforeHead), with: [.connectionLost], from: downloader, origin)
    },
    Case("a connection reset within the body is an error", needs: [.sockets]) { downloader, origin in
      for framing in [ContractResponse.Framing.length, .chunks] {
        try await expectFailure(
          "a reset within the body",
          response: ContractResponse(body: StoreContract.bytes(100_000), framing: framing, ending: .reset(after: 30_000)),
          with: [.connectionLost, .truncatedBody], from: downloader, origin)
      }
    },
    Case("a connection reset within the header section is an error", needs: [.sockets]) { downloader, origin in
      try await expectFailure(
        "a reset within the head", response: ContractResponse(ending: .resetInHead), with: [.connectionLost, .malformedResponse],
        from: downloader, origin)
    },
    Case("an incomplete header section is an error", needs: [.sockets, .cutHeads]) { downloader, origin in
      try await expectFailure(
        "an incomplete head", response: ContractResponse(body: Data("x".utf8), ending: .cutInHead),
        with: [.connectionLost, .malformedResponse], from: downloader, origin)
      for text in ["HTTP/1.1", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"] {
        try await expectFailure(
          "the head \(text.debugDescription)", response: ContractResponse(ending: .raw(Data(text.utf8))),
          with: [.connectionLost, .malformedResponse], from: downloader, origin)
      }
      try await expectSound(downloader, origin)
    },
    Case("a refused connection fails with a specific error") { downloader, origin in
      let request = DownloadRequest(head: try HTTPRequest(resource: await origin.refusingURL()))
      try await expectFailure("a refused connection", of: request, with: [.connectionRefused], from: downloader)
    },
    Case("a host without an address fails with a specific error") { downloader, origin in
      let request = DownloadRequest(head: try HTTPRequest(resource: await origin.unresolvableURL()))
      try await expectFailure("an unknown host", of: request, with: [.hostNotFound], from: downloader)
    },
    Case("the next request succeeds after every failure") { downloader, origin in
      for ending in [ContractResponse.Ending.cut(after: 10), .resetBeforeHead, .closeBeforeHead] {
        let broken = try await origin.serve(ContractResponse(body: StoreContract.bytes(1_000), ending: ending))
        _ = try await failure("a broken response") { _ = try await bytes(of: broken, from: downloader) }
        try await expectSound(downloader, origin)
      }
    },
    Case("failures do not affect concurrent downloads") { downloader, origin in
      let gate = Gate()
      let body = StoreContract.bytes(200_000)
      let sound = try await origin.serve(ContractResponse(body: body, bodyGate: gate))
      let response = try await get(sound, from: downloader)
      for ending in [ContractResponse.Ending.cut(after: 10), .resetBeforeHead, .closeBeforeHead] {
        let broken = try await origin.serve(ContractResponse(body: StoreContract.bytes(1_000), ending: ending))
        _ = try await failure("a broken response") { _ = try await bytes(of: broken, from: downloader) }
      }
      gate.open()
      try ContractViolation.expect(try await response.body.collect() == body, "the concurrent download received wrong bytes")
    },
  ]
}

extension DownloaderContract {
  private static func raw(_ text: String) -> ContractResponse { ContractResponse(ending: .raw(Data(text.utf8))) }

  /// Statements about responses that violate HTTP.
  static let malformedResponses: [Case] = [
    Case("a response that is not HTTP fails with a specific error", needs: [.sockets]) { downloader, origin in
      let binary = ContractResponse(ending: .raw(Data([0x00, 0xFF, 0x16, 0x03, 0x7F] + Array("\r\nno HTTP\r\n\r\n".utf8))))
      for response in [binary, raw("220 mail.example ESMTP\r\n"), raw("<html><body>no head</body></html>\r\n\r\n")] {
        try await expectFailure("not HTTP", response: response, with: [.malformedResponse], from: downloader, origin)
      }
      try await expectSound(downloader, origin)
    },
    Case("a field without a name or a colon is an error", needs: [.sockets]) { downloader, origin in
      for field in ["no colon at all", ": no name", "a name: with a blank"] {
        try await expectFailure(
          "the field \(field.debugDescription)", response: raw("HTTP/1.1 200 OK\r\n\(field)\r\nContent-Length: 2\r\n\r\nok"),
          with: [.malformedResponse], from: downloader, origin)
      }
    },
    Case("an endless header section is an error or times out", needs: [.sockets]) { downloader, origin in
      let url = try await origin.serve(ContractResponse(ending: .endlessHead))
      let request = DownloadRequest(head: try HTTPRequest(resource: url), timeout: .seconds(5))
      try await expectFailure("an endless head", of: request, with: [.malformedResponse, .timedOut], from: downloader)
      try await expectSound(downloader, origin)
    },
    Case("chunks without a valid size are an error", needs: [.sockets]) { downloader, origin in
      let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      for chunks in [
        "5\r\nhello\r\nno size\r\nworld\r\n0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n", "\r\nhello\r\n0\r\n\r\n",
        "FFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n", "5\r\nhelloworld\r\n0\r\n\r\n",
      ] {
        try await expectFailure(
          "the chunks \(chunks.debugDescription)", response: raw(head + chunks),
          with: [.malformedResponse, .truncatedBody], from: downloader, origin)
      }
    },
    Case("bytes beyond the declared length are not delivered", needs: [.sockets]) { downloader, origin in
      let body = StoreContract.bytes(1_000)
      let url = try await origin.serve(ContractResponse(body: body, framing: .claimed(400)))
      do {
        let received = try await bytes(of: url, from: downloader)
        try ContractViolation.expect(received == body.prefix(400), "\(received.count) bytes arrived instead of 400")
      } catch let error as CacheError {
        try ContractViolation.expectEqual(
          error.code.rawValue, CacheError.Code.malformedResponse.rawValue, "the error of a body longer than declared")
      }
      try await expectSound(downloader, origin)
    },
    Case("two different lengths are an error", needs: [.sockets]) { downloader, origin in
      let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\nContent-Length: "
      for other in ["4", "6"] {
        try await expectFailure(
          "lengths of 5 and \(other)", response: raw(head + "\(other)\r\n\r\nhello"),
          with: [.malformedResponse, .truncatedBody],
          from: downloader, origin)
      }
    },
    Case("a length that is not a number is an error", needs: [.sockets]) { downloader, origin in
      for length in ["five", "-5", "5 5", "99999999999999999999"] {
        try await expectFailure(
          "the length \(length)",
          response: raw("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: \(length)\r\n\r\nhello"),
          with: [.malformedResponse, .truncatedBody], from: downloader, origin)
      }
    },
    Case("a damaged content coding fails with a specific error, or is delivered unchanged") { downloader, origin in
      var cut = GzipSample.encoded
      cut.removeLast(12)
      var flipped = GzipSample.encoded
      flipped[flipped.count - 6] ^= 0xFF
      for damaged in [Data("no gzip".utf8), Data(cut), Data(flipped)] {
        let url = try await origin.serve(ContractResponse(fields: [.contentEncoding: "gzip"], body: damaged))
        do {
          let response = try await get(url, from: downloader)
          let received = try await response.body.collect()
          try ContractViolation.expect(
            received == damaged && response.head.headerFields[.contentEncoding] == "gzip",
            "a damaged coding was delivered as \(received.count) intact bytes")
        } catch let error as CacheError {
          try ContractViolation.expectEqual(
            error.code.rawValue, CacheError.Code.damagedContentCoding.rawValue, "the error of a damaged coding")
        }
      }
    },
  ]
}
