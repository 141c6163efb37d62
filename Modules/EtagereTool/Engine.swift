#if Tool
import Etagere

#if AsyncHTTP && !canImport(Darwin)
import AsyncHTTPNetworking
#elseif !canImport(Darwin)
#error("the tool needs the trait AsyncHTTP on this platform, because URLSession ends the process on some valid responses")
#endif

/// The downloader of the tool.
///
/// On Linux it is the engine for servers, because `URLSession` ends the process on some valid responses there. That engine does
/// not decode bodies, so it is wrapped in a downloader that asks for compressed responses and decodes them. On Apple platforms,
/// `URLSession` loads and decodes.
enum Engine {
  static func make() -> any Downloader {
    #if !canImport(Darwin)
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
