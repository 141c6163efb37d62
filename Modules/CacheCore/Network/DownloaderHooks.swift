public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Hooks that observe downloads, and accept or refuse their responses. Each hook has a default implementation that does nothing.
///
/// For each request, in this order:
///
/// 1. ``willStart(_:)`` is called with the request as it is sent.
/// 2. ``isValid(_:of:)`` is called with the status of the response.
/// 3. ``mayContinue(_:of:)`` is called with the header of the response, and may refuse it before the body is read.
/// 4. ``received(_:of:)`` is called with each chunk before the reader gets it, and may replace or refuse it.
/// 5. ``finished(_:with:)`` is called once for each request that was started.
/// 6. ``decoded(_:count:of:)`` is called after a success with the body as the reader received it: without content codings, and
///    with the chunks that step 4 replaced.
///
/// The calls for one request never overlap; those for different requests may. A hook that delays or refuses one request does not
/// affect other requests.
///
/// To change or refuse a request before it is sent, use a ``RequestInterceptor``.
///
/// ```swift
/// final class OnlyImages: DownloaderHooks {
///   func mayContinue(_ response: HTTPResponse, of exchange: DownloadExchange) async -> DownloadVerdict {
///     response.headerFields[.contentType]?.hasPrefix("image/") == true ? .proceed : .refuse("not an image")
///   }
/// }
/// ```
///
/// - Important: The hooks are an object that the app owns, so the downloader references them weakly. No hook is called after the
///   object is released.
public protocol DownloaderHooks: AnyObject, Sendable {
  /// Called before a request is sent. `exchange.request` includes every field that the engine's settings add.
  func willStart(_ exchange: DownloadExchange)

  /// Returns whether a response with this status is accepted. If not, the download ends with
  /// ``CacheError/Code/unacceptableStatus`` and the body is not read. Refusing a 304 breaks revalidation.
  func isValid(_ status: HTTPResponse.Status, of exchange: DownloadExchange) -> Bool

  /// Returns whether the download continues with the body of this response.
  func mayContinue(_ response: HTTPResponse, of exchange: DownloadExchange) async -> DownloadVerdict

  /// Receives the next bytes of the body, which are never empty.
  ///
  /// - Returns: The bytes for the reader: the given ones, or the same number of other bytes. After
  ///   ``DownloadVerdict/proceedReplacingBody``, any number of bytes, including none.
  /// - Throws: An error to refuse the bytes. It ends the body and stops the transfer.
  func received(_ data: Data, of exchange: DownloadExchange) async throws(CacheError) -> Data

  /// Called when the request has ended, with the header of a complete response or with an error. A body that is released early
  /// counts as cancelled.
  func finished(_ exchange: DownloadExchange, with result: Result<HTTPResponse, CacheError>)

  /// Called after ``finished(_:with:)``, if the reader received the whole body.
  ///
  /// - Parameters:
  ///   - body: The bytes that the reader received, or `nil` if there were more than ``decodedDataLimit``.
  ///   - count: The number of bytes.
  ///   - exchange: The request.
  func decoded(_ body: Data?, count: Int64, of exchange: DownloadExchange)

  /// The largest body, in bytes, that is collected for ``decoded(_:count:of:)``. The default is 0.
  var decodedDataLimit: Int { get }
}

extension DownloaderHooks {
  /// Does nothing.
  public func willStart(_ exchange: DownloadExchange) {}

  /// Accepts every status.
  public func isValid(_ status: HTTPResponse.Status, of exchange: DownloadExchange) -> Bool { true }

  /// Accepts every response.
  public func mayContinue(_ response: HTTPResponse, of exchange: DownloadExchange) async -> DownloadVerdict { .proceed }

  /// Returns the given bytes.
  public func received(_ data: Data, of exchange: DownloadExchange) async throws(CacheError) -> Data { data }

  /// Does nothing.
  public func finished(_ exchange: DownloadExchange, with result: Result<HTTPResponse, CacheError>) {}

  /// Does nothing.
  public func decoded(_ body: Data?, count: Int64, of exchange: DownloadExchange) {}

  /// Collects no body.
  public var decodedDataLimit: Int { 0 }
}

/// A hook's decision about a response.
public enum DownloadVerdict: Hashable, Sendable {
  /// Accepts the response with the bytes that arrive.
  case proceed
  /// Accepts the response and allows ``DownloaderHooks/received(_:of:)`` to change the number of bytes.
  ///
  /// The header loses its `Content-Length`. Its `Accept-Ranges` becomes `none`, because a range of the server's bytes is not a
  /// range of the replaced ones.
  case proceedReplacingBody
  /// Refuses the response. The body is not read, and the download ends with ``CacheError/Code/refused`` and this reason.
  case refuse(String)
}
