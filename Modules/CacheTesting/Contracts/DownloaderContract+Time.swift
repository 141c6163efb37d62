internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
      try ContractViolation.expect(
        try await downloader.download(request).body.collect() == body, "the received bytes differ")
    },
  ]
}
