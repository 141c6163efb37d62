import AsyncHTTPNetworking
import Etagere

/// The downloader for `http` and `https`. On Linux it is AsyncHTTPDownloader, because invalid responses of a server can crash
/// URLSession there.
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
