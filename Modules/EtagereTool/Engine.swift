#if Tool
import Etagere

#if AsyncHTTP && !canImport(Darwin)
import AsyncHTTPNetworking
#endif

/// What the tool downloads with.
///
/// On Linux the engine for servers: Foundation's traps when a stranger's server closes in the middle of its header section. It is
/// raw, so what goes around it asks for compressed answers and undoes them, as Apple's engine does itself.
enum Engine {
  static func make() -> any Downloader {
    #if !AsyncHTTP || canImport(Darwin)
    return SessionDownloader()
    #else
    var configuration = AsyncHTTPDownloader.Configuration()
    configuration.connectionsPerHost = 6
    configuration.userAgent = "etagere"
    // Without certificates of one's own nothing can be wrong with the configuration.
    let downloader = (try? AsyncHTTPDownloader(configuration: configuration)) ?? AsyncHTTPDownloader()
    return downloader.decoding(limit: .max)
    #endif
  }
}
#endif
