// URLPattern.
import { URLPattern } from "urlpattern-polyfill/dist/urlpattern.js";
import { install } from "../global";

install({ URLPattern });
