public import CacheCore

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
