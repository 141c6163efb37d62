internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension DownloaderContract {
  /// Time-outs. Time passes here: pace on a wire is what these statements are about.
  static let time: [Case] = [
    Case("silence before the head runs into the idle time-out", needs: [.sockets]) { downloader, origin in
      let url = try await origin.serve(ContractAnswer(ending: .stallBeforeHead))
      let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(1))
      try await expectFailure("a server that never answers", of: request, with: [.timedOut], from: downloader)
      try await expectSound(downloader, origin)
    },
    Case("silence in the body runs into the idle time-out", needs: [.sockets]) { downloader, origin in
      for framing in [ContractAnswer.Framing.length, .chunks] {
        let answer = ContractAnswer(body: StoreContract.bytes(1_000), framing: framing, ending: .stall(after: 100))
        let url = try await origin.serve(answer)
        let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(1))
        try await expectFailure("a server that falls silent", of: request, with: [.timedOut], from: downloader)
      }
    },
    Case("a body that trickles for ever runs into the whole time-out", needs: [.sockets]) { downloader, origin in
      let answer = ContractAnswer(body: StoreContract.bytes(20_000), ending: .trickle(every: .milliseconds(50)))
      let url = try await origin.serve(answer)
      let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(3_600), timeout: .seconds(1))
      try await expectFailure("a body that trickles", of: request, with: [.timedOut], from: downloader)
      try await expectSound(downloader, origin)
    },
    Case("a server that never answers, or byte by byte, runs into the whole time-out", needs: [.sockets]) { downloader, origin in
      for ending in [ContractAnswer.Ending.stallBeforeHead, .trickleHead(every: .seconds(1))] {
        let url = try await origin.serve(ContractAnswer(ending: ending))
        let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(3_600), timeout: .seconds(1))
        try await expectFailure("a server that does not answer", of: request, with: [.timedOut], from: downloader)
      }
    },
    Case("a head that comes byte by byte is an answer like any other", needs: [.sockets]) { downloader, origin in
      let body = StoreContract.bytes(1_000)
      let url = try await origin.serve(
        ContractAnswer(fields: [.eTag: "\"slow\""], body: body, ending: .trickleHead(every: .milliseconds(2))))
      let response = try await get(url, from: downloader)
      try ContractViolation.expectEqual(response.head.headerFields[.eTag], "\"slow\"", "the entity tag")
      try ContractViolation.expect(try await response.body.collect() == body, "the bytes arrived changed")
    },
    Case("a body that is never silent for long is not idle", needs: [.sockets]) { downloader, origin in
      let body = StoreContract.bytes(100)
      let url = try await origin.serve(ContractAnswer(body: body, ending: .trickle(every: .milliseconds(250))))
      // Less than the whole takes, and so much more than a pause that a busy machine does not make it silence.
      let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(20))
      let received = try await downloader.download(request).body.collect()
      try ContractViolation.expect(received == body, "\(received.count) of \(body.count) bytes came, or changed")
    },
    Case("a reader that takes its time is not a server that is silent", needs: [.sockets]) { downloader, origin in
      let body = StoreContract.bytes(8 << 20)
      let url = try await origin.serve(ContractAnswer(body: body))
      let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(20))
      let response = try await downloader.download(request)
      var iterator = response.body.makeAsyncIterator()
      guard var whole = try await iterator.next() else { throw ContractViolation("the body ended before it began") }
      try await Task.sleep(for: .seconds(25))
      while let chunk = try await iterator.next() { whole.append(chunk) }
      try ContractViolation.expect(whole == body, "\(whole.count) of \(body.count) bytes came, or changed")
    },
    Case("a time-out that does not come to pass changes nothing") { downloader, origin in
      let body = StoreContract.bytes(100_000)
      let url = try await origin.serve(ContractAnswer(body: body))
      let request = DownloadRequest(head: try HTTPRequest(resource: url), idleTimeout: .seconds(60), timeout: .seconds(90))
      try ContractViolation.expect(
        try await downloader.download(request).body.collect() == body, "the bytes arrived changed")
    },
  ]
}
