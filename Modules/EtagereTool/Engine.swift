#if Tool
import Etagere

#if AsyncHTTP && !canImport(Darwin)
import AsyncHTTPNetworking
#endif

/// The downloader of the tool.
///
/// On Linux with the trait `AsyncHTTP`, it is the engine for servers. That engine does not decode bodies, so it is wrapped in a
/// downloader that asks for compressed responses and decodes them. Without the trait, `URLSession` loads and decodes. On Linux,
/// Foundation traps if a server closes the connection in the middle of a header section, so that build is for trusted servers.
enum Engine {
  static func make() -> any Downloader {
    #if AsyncHTTP && !canImport(Darwin)
    var configuration = AsyncHTTPDownloader.Configuration()
    configuration.connectionsPerHost = 6
    configuration.userAgent = userAgent
    // Only certificates can make a configuration invalid, and this one has none.
    let downloader = (try? AsyncHTTPDownloader(configuration: configuration)) ?? AsyncHTTPDownloader()
    return downloader.decoding(limit: .max)
    #else
    var configuration = SessionDownloader.Configuration()
    configuration.userAgent = userAgent
    return SessionDownloader(configuration: configuration)
    #endif
  }

  private static var userAgent: String { "etagere/\(EtagereCommand.version)" }
}
#endif
