public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The contract of every `Downloader`, as plain values for any test framework.
///
/// ```swift
/// @Test(arguments: DownloaderContract.cases)
/// func myEngine(_ statement: DownloaderContract.Case) async throws {
///   try await statement.run(on: MyEngine(), origin: origin)   // a LoopbackOrigin, for an engine with sockets
/// }
/// ```
///
/// Not every platform lets a downloader satisfy every statement. ``Case/needs`` lists the capabilities that a statement
/// requires. A test can name the missing traits of its downloader and report the affected statements as known issues.
public enum DownloaderContract {
  /// A statement of the contract.
  public struct Case: Sendable, CustomStringConvertible {
    /// The statement as a sentence.
    public let name: String
    /// The traits that a downloader must have for this statement.
    public let needs: Set<Trait>
    let body: @Sendable (any Downloader, any ContractOrigin) async throws -> Void

    init(
      _ name: String, needs: Set<Trait> = [], body: @escaping @Sendable (any Downloader, any ContractOrigin) async throws -> Void
    ) {
      (self.name, self.needs, self.body) = (name, needs, body)
    }

    public var description: String { name }

    /// Checks the statement. A case that succeeds leaves no work running.
    ///
    /// - Parameters:
    ///   - downloader: The downloader. Other cases may use it at the same time.
    ///   - origin: The origin. Other cases may use it at the same time.
    ///   - bound: The time limit. After that, the task is cancelled and abandoned.
    /// - Throws: ``ContractViolation`` if the downloader violates the statement or hangs, otherwise the downloader's
    ///   error.
    public func run(
      on downloader: any Downloader, origin: any ContractOrigin, within bound: Duration = .seconds(120)
    ) async throws {
      if needs.contains(.sockets), !origin.hasSockets { throw ContractViolation("the statement needs an origin with sockets") }
      try await DownloaderContract.withBound(bound, "the statement") { [body] in try await body(downloader, origin) }
    }
  }

  /// All statements of the contract.
  public static let cases: [Case] =
    responses + heads + requests + collecting + concurrency + failures + malformedResponses + cancellation + time + connections
}

extension DownloaderContract {
  /// A capability that a statement needs from a downloader or its platform, beyond sending requests and receiving
  /// responses.
  public struct Trait: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The name of the trait.
    public let rawValue: String

    /// Creates a trait for a custom statement.
    public init(rawValue: String) { self.rawValue = rawValue }

    public var description: String { rawValue }

    /// The downloader connects to the origin. A double that makes up its responses does not.
    public static let sockets = Trait(rawValue: "sockets")
    /// The downloader sends a request body while it is produced, without collecting it first.
    public static let streamingRequests = Trait(rawValue: "streamingRequests")
    /// The downloader returns a body that it may collect together with its head (`DownloadRequest.collectUpTo`).
    public static let collectedBodies = Trait(rawValue: "collectedBodies")
    /// The downloader survives an incomplete header section. Foundation's `URLSession` on Linux does not: it traps the
    /// process. Do not run such a statement with it.
    public static let cutHeads = Trait(rawValue: "cutHeads")
  }
}

extension DownloaderContract {
  static func get(_ url: URL, _ fields: HTTPFields = [:], from downloader: any Downloader) async throws -> DownloadResponse {
    try await downloader.download(DownloadRequest(head: HTTPRequest(resource: url, headerFields: fields)))
  }

  /// Returns the whole body of the response to a GET request.
  static func bytes(of url: URL, from downloader: any Downloader) async throws -> Data {
    try await get(url, from: downloader).body.collect()
  }

  /// Runs an operation that must end while `gate` holds back the rest of a response.
  ///
  /// A downloader that waits for the rest violates the statement. The time limit of the case then cancels the task, which opens
  /// the gate, so that the abandoned operation ends too.
  static func whileClosed<Value>(_ gate: Gate, _ operation: () async throws -> Value) async throws -> Value {
    try await withTaskCancellationHandler(operation: operation) { gate.open() }
  }

  /// Returns the error of an operation that must fail.
  static func failure(_ what: String, _ operation: () async throws -> Void) async throws -> CacheError {
    do {
      try await operation()
    } catch let error as CacheError {
      return error
    }
    throw ContractViolation("\(what) did not fail")
  }

  /// Loads the head and body of `request`, which must fail with one of the given codes.
  static func expectFailure(
    _ what: String, of request: DownloadRequest, with codes: Set<CacheError.Code>, from downloader: any Downloader,
    within bound: Duration = .seconds(600)
  ) async throws {
    let error = try await withBound(bound, what) {
      try await failure(what) { _ = try await downloader.download(request).body.collect() }
    }
    let names = codes.map(\.rawValue).sorted().joined(separator: " or ")
    try ContractViolation.expect(codes.contains(error.code), "\(what): expected \(names), saw \(error.code.rawValue): \(error)")
    try ContractViolation.expect(error.url == nil, "\(what): the error contains a URL, which the caller of a downloader adds")
  }

  /// Loads a GET request to which the origin sends `response`. The load must fail with one of the given codes.
  static func expectFailure(
    _ what: String, response: ContractResponse, with codes: Set<CacheError.Code>, from downloader: any Downloader,
    _ origin: any ContractOrigin
  ) async throws {
    let url = try await origin.serve(response)
    try await expectFailure(what, of: DownloadRequest(head: HTTPRequest(resource: url)), with: codes, from: downloader)
  }

  /// Checks that a downloader still works.
  static func expectSound(_ downloader: any Downloader, _ origin: any ContractOrigin) async throws {
    let url = try await origin.serve(ContractResponse(body: Data("sound".utf8)))
    try ContractViolation.expect(
      try await bytes(of: url, from: downloader) == Data("sound".utf8), "the next request received wrong bytes")
  }
}

extension DownloaderContract {
  /// Runs an operation and abandons it after a time limit, so that a hang fails one test instead of blocking the suite.
  ///
  /// A task group would wait for the hanging child. Therefore the operation runs in an unstructured task, which is
  /// cancelled and abandoned.
  ///
  /// - Throws: The error of the operation, or a violation that names `what` after the time limit.
  static func withBound<Value: Sendable>(
    _ bound: Duration, _ what: String, _ operation: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let outcome = WatchedState<Result<Value, any Error>?>(nil)
    let work = Task {
      do {
        let value = try await operation()
        outcome.update { $0 = $0 ?? .success(value) }
      } catch {
        outcome.update { $0 = $0 ?? .failure(error) }
      }
    }
    let alarm = Task {
      guard (try? await Task.sleep(for: bound)) != nil else { return }
      outcome.update { $0 = $0 ?? .failure(ContractViolation("\(what) did not end within \(bound)")) }
    }
    await outcome.wait { $0 != nil }
    alarm.cancel()
    work.cancel()
    guard let result = outcome.read({ $0 }) else { throw CancellationError() }
    return try result.get()
  }
}

/// A scripted downloader is its own origin for all statements that need no wire.
extension ScriptedDownloader: ContractOrigin {
  public var hasSockets: Bool { false }

  public func serve(_ responses: [ContractResponse]) async throws -> URL {
    let scripted = try responses.map { try Self.scripted($0) }
    guard let last = scripted.last else { throw ContractViolation("no response to serve") }
    let url = try uniqueURL()
    let turn = Lock(0)
    serve(url) { _ in
      let index = turn.withLock { turn in
        defer { turn += 1 }
        return turn
      }
      return index < scripted.count ? scripted[index] : last
    }
    return url
  }

  public func received(at url: URL) async -> [ContractRequest] {
    zip(requests(for: url), requestBodies(for: url)).map { ContractRequest(head: $0, body: $1) }
  }

  /// Request bodies are read before the response, so there is nothing to wait for.
  public func waitForRequestBody(at url: URL, bytes: Int) async {}

  public func bodyBytesSent(at url: URL) async -> Int? { nil }

  public func refusingURL() async throws -> URL {
    let url = try uniqueURL()
    serve(url) { _ in .failure(.connectionRefused) }
    return url
  }

  public func unresolvableURL() async throws -> URL {
    let url = try uniqueURL()
    serve(url) { _ in .failure(.hostNotFound) }
    return url
  }

  private static func scripted(_ response: ContractResponse) throws -> ScriptedResponse {
    var scripted = ScriptedResponse.response(response.status, fields: response.fields, body: response.body)
      .chunked(by: max(1, (response.body.count + 1) / 2))
    switch response.ending {
    case .complete, .closesAfterwards: break
    case .cut(let bytes): scripted = scripted.cut(after: bytes)
    case .resetBeforeHead, .closeBeforeHead: scripted = .failure(.connectionLost)
    case .reset, .stall, .trickle, .stallBeforeHead, .cutInHead, .resetInHead, .trickleHead, .endlessHead, .raw:
      throw ContractViolation("a response that ends with \(response.ending) needs a wire")
    }
    switch response.framing {
    case .length: break
    case .chunks, .connection: scripted = scripted.withoutLength()
    case .claimed: throw ContractViolation("a wrong length needs a wire")
    }
    if let gate = response.gate { scripted = scripted.held(by: gate) }
    if let gate = response.bodyGate { scripted = scripted.bodyHeld(by: gate) }
    return scripted
  }

  private func uniqueURL() throws -> URL {
    let path = Revision.random().description
    guard let url = URL(string: "http://contract.test/\(path)") else { throw ContractViolation("no URL for \(path)") }
    return url
  }
}
