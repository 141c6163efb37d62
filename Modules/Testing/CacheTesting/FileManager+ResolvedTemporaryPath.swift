#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Glibc)
internal import Glibc
#endif

extension FileManager {
  /// The path of the temporary folder without links, which a test can compare with the paths that a store reports.
  ///
  /// On macOS, `/var` is a link to `/private/var`, which `URL.resolvingSymlinksInPath()` does not follow.
  package var resolvedTemporaryPath: String {
    let path = temporaryDirectory.path
    guard let resolved = realpath(path, nil) else { return path }
    defer { free(resolved) }
    return String(cString: resolved)
  }
}
