#if Tool
import ArgumentParser
import Etagere
import Foundation

/// The options that say where the cache is.
struct CacheOptions: ParsableArguments {
  @Option(
    name: .customLong("cache-dir"),
    help: ArgumentHelp("The folder of the cache. The default is in the user's cache folder.", valueName: "folder"),
    completion: .directory, transform: Text.path)
  var path: String?

  private func folder() throws -> URL {
    if let folder = path.map({ URL(filePath: $0, directoryHint: .isDirectory) }) ?? ResourceManager.defaultFolder {
      return folder
    }
    Console.complain("cannot use the cache folder: there is no home folder; set HOME or XDG_CACHE_HOME, or use --cache-dir")
    throw ToolFailure(status: .ioError)
  }

  /// Opens the store without a manager.
  ///
  /// - Returns: The path of the folder, and its store. The store is `nil` if the folder does not exist: a command that looks at a
  ///   cache does not create one, which could then belong to another user than the one that fills it.
  func open(_ reporting: ReportingOptions) throws -> (path: String, store: DiskCache?) {
    let folder = try folder()
    let path = folder.path(percentEncoded: false)
    var status = stat()
    if stat(path, &status) != 0, errno == ENOENT {
      reporting.trace("no cache folder \(path)")
      return (path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path, nil)
    }
    let store = try opening { () throws(CacheError) in try DiskCache(folder: folder) }
    reporting.trace("cache folder \(store.path)")
    return (store.path, store)
  }

  /// Creates a manager with every component, and the store in this folder.
  func manager(_ reporting: ReportingOptions, _ watch: CacheWatch = CacheWatch()) throws -> ResourceManager {
    let folder = try folder()
    var configuration = try opening { () throws(CacheError) in
      try ResourceManager.Configuration.standard(folder: folder, downloader: reporting.tracing(Engine.make()))
    }
    configuration.observer = reporting.tracing(watch)
    reporting.trace("cache folder \(folder.path(percentEncoded: false))")
    return ResourceManager(configuration)
  }

  private func opening<Value>(_ open: () throws(CacheError) -> Value) throws -> Value {
    do throws(CacheError) {
      return try open()
    } catch {
      Console.complain("cannot use the cache folder: \(error)")
      throw ToolFailure(status: .ioError)
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
