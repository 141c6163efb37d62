public import CacheCore

/// What every `Downloader` must do, as plain values for any test framework.
///
/// ```swift
/// @Test(arguments: DownloaderContract.cases)
/// func myEngine(_ statement: DownloaderContract.Case) async throws {
///   try await statement.run(on: MyEngine(), origin: origin)   // a LoopbackOrigin, for an engine with sockets
/// }
/// ```
///
/// Not every platform lets an engine keep every statement. ``Case/needs`` tells what a statement asks beyond sending and
/// receiving, so that a test can name what its engine lacks, and show those statements as known rather than leave them out.
public enum DownloaderContract {
  /// One statement.
  public struct Case: Sendable, CustomStringConvertible {
    /// The statement, as a sentence.
    public let name: String
    /// What an engine must have for it.
    public let needs: Set<Trait>
    let body: @Sendable (any Downloader, any ContractOrigin) async throws -> Void

    init(
      _ name: String, needs: Set<Trait> = [], body: @escaping @Sendable (any Downloader, any ContractOrigin) async throws -> Void
    ) {
      (self.name, self.needs, self.body) = (name, needs, body)
    }

    public var description: String { name }

    /// Checks the statement. Nothing is left running by a case that succeeds.
    ///
    /// - Parameters:
    ///   - downloader: the engine. It may be used for other cases too, also at the same time.
    ///   - origin: what answers it. It may be used for other cases too.
    ///   - bound: how long the statement may take. An engine that hangs is given up, and left behind with its task cancelled.
    /// - Throws: ``ContractViolation`` when the engine breaks the statement, or hangs; else the engine's own error.
    public func run(
      on downloader: any Downloader, origin: any ContractOrigin, within bound: Duration = .seconds(120)
    ) async throws {
      if needs.contains(.sockets), !origin.hasSockets { throw ContractViolation("it needs an origin with sockets") }
      try await DownloaderContract.withBound(bound, "the statement") { [body] in try await body(downloader, origin) }
    }
  }

  /// Every statement.
  public static let cases: [Case] =
    answers + heads + requests + concurrency + failures + malformedAnswers + cancellation + time + connections
}
