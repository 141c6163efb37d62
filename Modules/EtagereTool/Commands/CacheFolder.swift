#if Tool
import ArgumentParser
import Etagere
import Foundation

/// What every command takes.
struct CacheFolder: ParsableArguments {
  @Option(name: .customLong("cache-dir"), help: "Where the cache keeps its files.", completion: .directory)
  var path: String?

  @Flag(help: "Print JSON: one document, or one for each resource and line.")
  var json = false

  var url: URL { path.map { URL(filePath: $0, directoryHint: .isDirectory) } ?? ResourceManager.defaultFolder }

  /// The store alone.
  func open() throws -> DiskCache {
    do throws(CacheError) {
      return try DiskCache(folder: url)
    } catch {
      Console.complain("the cache folder can't be used: \(error)")
      throw ToolFailure(status: .cacheUnusable)
    }
  }

  /// Everything wired, with the store in this folder.
  func manager(_ watch: CacheWatch = CacheWatch()) throws -> ResourceManager {
    do throws(CacheError) {
      var configuration = try ResourceManager.Configuration.standard(folder: url, downloader: Engine.make())
      configuration.observer = watch
      return ResourceManager(configuration)
    } catch {
      Console.complain("the cache folder can't be used: \(error)")
      throw ToolFailure(status: .cacheUnusable)
    }
  }
}

/// The names of the policies on the command line.
enum PolicyName: String, ExpressibleByArgument, CaseIterable {
  case standard
  case cacheFirst = "cache-first"
  case revalidate
  case reload
  case cacheOnly = "cache-only"
  case memoryElseReload = "memory-else-reload"
  case staleWhileRevalidate = "stale-while-revalidate"

  var policy: LoadPolicy {
    switch self {
    case .standard: .standard
    case .cacheFirst: .cacheFirst
    case .revalidate: .revalidate()
    case .reload: .reload
    case .cacheOnly: .cacheOnly
    case .memoryElseReload: .memoryElseReload
    case .staleWhileRevalidate: .staleWhileRevalidate
    }
  }
}
#endif
