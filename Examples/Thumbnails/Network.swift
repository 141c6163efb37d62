#if Thumbnails
import AsyncHTTPNetworking
import Etagere

/// What `http` and `https` are loaded with: on Linux the engine for servers, whom no stranger's server brings down.
enum Network {
  static func engine() throws(CacheError) -> any Downloader {
    #if canImport(Darwin)
    return SessionDownloader()
    #else
    var configuration = AsyncHTTPDownloader.Configuration()
    configuration.connectionsPerHost = 6
    configuration.userAgent = "thumbnails"
    return try AsyncHTTPDownloader(configuration: configuration)
    #endif
  }
}
#endif
