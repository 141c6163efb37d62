public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What every `Downloader` must do, as plain values for any test framework.
///
/// ```swift
/// @Test(arguments: DownloaderContract.cases)
/// func myEngine(_ statement: DownloaderContract.Case) async throws {
///   try await statement.run(on: MyEngine(), origin: origin)   // a LoopbackOrigin, for an engine with sockets
/// }
/// ```
public enum DownloaderContract {
  /// One statement.
  public struct Case: Sendable, CustomStringConvertible {
    /// The statement, as a sentence.
    public let name: String
    let body: @Sendable (any Downloader, any ContractOrigin) async throws -> Void

    public var description: String { name }

    /// Checks the statement.
    ///
    /// - Throws: ``ContractViolation`` when the engine breaks it, or the engine's own error.
    public func run(on downloader: any Downloader, origin: any ContractOrigin) async throws {
      try await body(downloader, origin)
    }
  }

  /// Every statement.
  public static let cases: [Case] = answers + failures + cancellation
}

extension DownloaderContract {
  static func get(
    _ url: URL, _ fields: HTTPFields = [:], from downloader: any Downloader
  ) async throws -> DownloadResponse {
    try await downloader.download(DownloadRequest(head: HTTPRequest(resource: url, headerFields: fields)))
  }

  /// The error of an operation that must fail.
  static func failure(_ what: String, _ operation: () async throws -> Void) async throws -> CacheError {
    do {
      try await operation()
    } catch let error as CacheError {
      return error
    }
    throw ContractViolation("\(what) ended normally")
  }

  private static let answers: [Case] = [
    Case(name: "the original bytes arrive, whatever their number") { downloader, origin in
      for size in [0, 1, 1_000, 70_000, 1_000_000] {
        let body = StoreContract.bytes(size)
        let url = try await origin.serve(ContractAnswer(body: body))
        let response = try await get(url, from: downloader)
        try ContractViolation.expectEqual(response.head.status.code, 200, "the status")
        try ContractViolation.expectEqual(response.body.length, Int64(size), "the announced length")
        try ContractViolation.expect(try await response.body.collect() == body, "\(size) bytes arrived changed")
      }
    },
    Case(name: "a body whose length is not told beforehand arrives whole") { downloader, origin in
      let body = StoreContract.bytes(200_000)
      let url = try await origin.serve(ContractAnswer(body: body, statesLength: false))
      let response = try await get(url, from: downloader)
      try ContractViolation.expectEqual(response.body.length, nil, "the announced length")
      try ContractViolation.expect(try await response.body.collect() == body, "the bytes arrived changed")
    },
    Case(name: "many URLs in parallel each get their own bytes") { downloader, origin in
      var urls: [URL] = []
      for index in 0..<30 {
        urls.append(try await origin.serve(ContractAnswer(body: StoreContract.bytes(3_000, seed: UInt64(index)))))
      }
      try await withThrowingTaskGroup(of: (Int, Data).self) { group in
        for (index, url) in urls.enumerated() {
          group.addTask { (index, try await get(url, from: downloader).body.collect()) }
        }
        for try await (index, data) in group {
          try ContractViolation.expect(data == StoreContract.bytes(3_000, seed: UInt64(index)), "URL \(index) got other bytes")
        }
      }
    },
    Case(name: "every status is an answer, and no redirect is followed") { downloader, origin in
      for status in [200, 201, 204, 301, 302, 307, 403, 404, 410, 500, 503] {
        var fields = HTTPFields()
        if (300..<400).contains(status) { fields[.location] = "http://127.0.0.1:9/elsewhere" }
        let url = try await origin.serve(ContractAnswer(status: .init(code: status), fields: fields))
        let response = try await get(url, from: downloader)
        try ContractViolation.expectEqual(response.head.status.code, status, "the status")
        _ = try await response.body.collect()
      }
    },
    Case(name: "a 401 without a credential ends, as an answer") { downloader, origin in
      let fields: HTTPFields = [.wwwAuthenticate: "Basic realm=\"contract\""]
      let url = try await origin.serve(ContractAnswer(status: .unauthorized, fields: fields))
      let response = try await get(url, from: downloader)
      try ContractViolation.expectEqual(response.head.status.code, 401, "the status")
    },
    Case(name: "conditions go out as they are, and a 304 comes back as a 304 without a body") { downloader, origin in
      let url = try await origin.serve(ContractAnswer(status: .notModified, fields: [.eTag: "W/\"a, b\""]))
      let response = try await get(url, [.ifNoneMatch: "W/\"a, b\"", .cacheControl: "max-age=0"], from: downloader)
      try ContractViolation.expectEqual(response.head.status.code, 304, "the status")
      try ContractViolation.expectEqual(response.head.headerFields[.eTag], "W/\"a, b\"", "the entity tag")
      try ContractViolation.expectEqual(try await response.body.collect().count, 0, "bytes of a 304's body")
      let sent = await origin.received(at: url)
      try ContractViolation.expectEqual(sent.last?.headerFields[.ifNoneMatch], "W/\"a, b\"", "If-None-Match as it arrived")
      try ContractViolation.expectEqual(sent.last?.headerFields[.cacheControl], "max-age=0", "Cache-Control as it arrived")
    },
    Case(name: "the answer's fields can be read by name, in any case") { downloader, origin in
      let fields: HTTPFields = [.eTag: "\"x\"", .cacheControl: "max-age=60, immutable", .init("X-Own") ?? .age: "1"]
      let url = try await origin.serve(ContractAnswer(fields: fields, body: Data("x".utf8)))
      let head = try await get(url, from: downloader).head
      for field in fields {
        try ContractViolation.expectEqual(head.headerFields[field.name], field.value, "the field \(field.name)")
      }
    },
  ]

  private static let failures: [Case] = [
    Case(name: "a body that is cut short is an error, whether its length was told or not") { downloader, origin in
      for statesLength in [true, false] {
        let answer = ContractAnswer(body: StoreContract.bytes(100_000), ending: .cut(after: 40_000), statesLength: statesLength)
        let url = try await origin.serve(answer)
        let error = try await failure("a body of 40,000 of 100,000 bytes") {
          _ = try await get(url, from: downloader).body.collect()
        }
        try ContractViolation.expect(
          error.code == .truncatedBody || error.code == .connectionLost, "a cut body is \(error.code.rawValue): \(error)")
      }
    },
    Case(name: "a connection that is reset before the head is an error of its own") { downloader, origin in
      let url = try await origin.serve(ContractAnswer(ending: .resetBeforeHead))
      let error = try await failure("a reset") { _ = try await get(url, from: downloader) }
      try ContractViolation.expectEqual(error.code.rawValue, CacheError.Code.connectionLost.rawValue, "the error of a reset")
    },
    Case(name: "a port at which nobody listens is an error of its own") { downloader, origin in
      guard let url = try await origin.refusingURL() else { return }
      let error = try await failure("a refused connection") { _ = try await get(url, from: downloader) }
      try ContractViolation.expectEqual(error.code.rawValue, CacheError.Code.connectionRefused.rawValue, "the error of a refusal")
    },
    Case(name: "after every failure the next request succeeds") { downloader, origin in
      for ending in [ContractAnswer.Ending.cut(after: 10), .resetBeforeHead] {
        let broken = try await origin.serve(ContractAnswer(body: StoreContract.bytes(1_000), ending: ending))
        _ = try await failure("a broken answer") { _ = try await get(broken, from: downloader).body.collect() }
        let sound = try await origin.serve(ContractAnswer(body: Data("sound".utf8)))
        try ContractViolation.expect(
          try await get(sound, from: downloader).body.collect() == Data("sound".utf8), "the next request got other bytes")
      }
    },
  ]

  private static let cancellation: [Case] = [
    Case(name: "cancelling the task that waits for the head ends the download as cancelled") { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractAnswer(body: Data("late".utf8), gate: gate))
      let waiting = Task { try await get(url, from: downloader) }
      await gate.arrived()
      waiting.cancel()
      // Opened only so that a double without sockets can notice: a real engine has ended before.
      gate.open()
      let error = try await failure("a cancelled download") { _ = try await waiting.value }
      try ContractViolation.expect(error.isCancellation, "a cancelled download is \(error)")
    },
    Case(name: "a task that is cancelled beforehand sends nothing it waits for") { downloader, origin in
      let url = try await origin.serve(ContractAnswer(body: Data("never".utf8)))
      let gate = Gate()
      let waiting = Task {
        await gate.pass()
        return try await get(url, from: downloader).body.collect()
      }
      waiting.cancel()
      gate.open()
      let error = try await failure("a download of a cancelled task") { _ = try await waiting.value }
      try ContractViolation.expect(error.isCancellation, "a download of a cancelled task is \(error)")
    },
    Case(name: "a body that is cancelled unread throws, and the next request succeeds") { downloader, origin in
      let gate = Gate()
      let url = try await origin.serve(ContractAnswer(body: StoreContract.bytes(300_000), bodyGate: gate))
      let response = try await get(url, from: downloader)
      response.body.source.cancel()
      gate.open()
      let error = try await failure("a cancelled body") { _ = try await response.body.collect() }
      try ContractViolation.expect(error.isCancellation, "a cancelled body is \(error)")
      let sound = try await origin.serve(ContractAnswer(body: Data("sound".utf8)))
      try ContractViolation.expect(
        try await get(sound, from: downloader).body.collect() == Data("sound".utf8), "the next request got other bytes")
    },
  ]
}
