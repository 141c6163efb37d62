internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
