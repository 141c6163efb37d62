#if !canImport(Darwin)
package import CacheCore
internal import Synchronization

#if canImport(Musl)
internal import Musl
#elseif canImport(Glibc)
internal import Glibc
#endif

/// A URLSession engine that warns where Foundation is not Apple's. Its first request writes one line to standard error, because
/// Foundation ends the process on some valid responses there.
package final class WarningSessionDownloader: Downloader {
  package var id: ComponentID { base.id }
  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package let base: any Downloader
  private let write: @Sendable (String) -> Void
  private let hasWritten = Atomic<Bool>(false)

  package init(_ base: any Downloader, write: @escaping @Sendable (String) -> Void = WarningSessionDownloader.writeError) {
    self.base = base
    self.write = write
  }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    if !hasWritten.exchange(true, ordering: .relaxed) {
      write(
        "Etagere: this manager loads with URLSession, which ends the process on some responses on Linux: "
          + "give it an AsyncHTTPDownloader (trait AsyncHTTP)\n")
    }
    return try await base.download(request)
  }

  package static func writeError(_ line: String) {
    // A line that cannot be written is lost. The request is not.
    _ = Array(line.utf8).withUnsafeBytes { bytes in
      #if canImport(Musl)
      Musl.write(STDERR_FILENO, bytes.baseAddress, bytes.count)
      #elseif canImport(Glibc)
      Glibc.write(STDERR_FILENO, bytes.baseAddress, bytes.count)
      #else
      0
      #endif
    }
  }
}
#endif
