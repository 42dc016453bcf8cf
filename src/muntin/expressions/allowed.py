"""The functions that expressions may call, reviewed by hand and grouped by topic.

A function belongs here if its value depends only on its arguments: not on the clock, randomness,
settings, the session, the catalog, files or the network, nor on how rows are cut into batches. All
others are refused, so a new release of DuckDB adds no function. A name with a number (``age/2``) is
allowed with exactly that many arguments.
"""

from __future__ import annotations

GROUPS: dict[str, str] = {
    "operators": """
        + - * / // % ^ ** & | ~ << >> || @ !~~ ~~ !~~* ~~* ~~~ ^@ && @> <@ <-> <=> ->> xor
        add subtract multiply divide mod fdiv fmod
        like_escape not_like_escape ilike_escape not_ilike_escape
    """,
    "conditions": "if nullif switch greatest least",
    "numbers": """
        abs acos acosh asin asinh atan atan2 atanh binom cbrt ceil ceiling cos cosh cot degrees even
        exp factorial floor gamma gcd greatest_common_divisor isfinite isinf isnan lcm
        least_common_multiple lgamma ln log log10 log2 nextafter pi pow power radians round
        round_even roundbankers sign signbit sin sinh sqrt tan tanh trunc equi_width_bins
        is_histogram_other_bin
    """,
    "bits": "bit_count bit_length bit_position bitstring get_bit set_bit",
    "text": """
        ascii bar chr char_length character_length concat concat_ws contains ends_with format
        formatReadableDecimalSize formatReadableSize format_bytes instr lcase left left_grapheme len
        length length_grapheme lower lpad ltrim nfc_normalize octet_length ord overlay
        parse_formatted_bytes pg_size_pretty position prefix printf repeat replace reverse right
        right_grapheme rpad rtrim split split_part starts_with str_split str_split_regex
        string_split string_split_regex string_to_array strip_accents strlen strpos substr substring
        substring_grapheme suffix translate trim ucase unicode upper
        regexp_escape regexp_extract regexp_extract_all regexp_full_match regexp_matches
        regexp_replace regexp_split_to_array
        damerau_levenshtein editdist3 hamming jaccard jaro_similarity jaro_winkler_similarity
        levenshtein mismatches
        parse_dirname parse_dirpath parse_filename parse_path path_join url_decode url_encode
    """,
    "encodings and hashes": """
        base64 bin decode encode from_base64 from_binary from_hex hash hex md5 md5_number
        md5_number_lower md5_number_upper sha1 sha256 to_base to_base64 to_binary to_hex unbin unhex
        uuid_extract_timestamp uuid_extract_version
    """,
    "dates and times": """
        age/2 century date_add date_diff date_part date_sub date_trunc datediff datepart datesub
        datetrunc day dayname dayofmonth dayofweek dayofyear days_in_month decade epoch epoch_ms
        epoch_ns epoch_us era hour isodow isoyear julian last_day make_date make_time make_timestamp
        make_timestamp_ms make_timestamp_ns make_timestamptz microsecond millennium millisecond
        minute month monthname nanosecond normalized_interval quarter second strftime strptime
        time_bucket timezone timezone_hour timezone_minute to_centuries to_days to_decades to_hours
        to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds
        to_timestamp to_weeks to_years try_strptime week weekday weekofyear year yearweek
    """,
    "lists and arrays": """
        array_append array_apply array_cat array_concat array_contains array_cosine_distance
        array_cosine_similarity array_cross_product array_distance array_distinct array_dot_product
        array_extract array_filter array_grade_up array_has array_has_all array_has_any
        array_indexof array_inner_product array_intersect array_length array_negative_dot_product
        array_negative_inner_product array_pop_back array_pop_front array_position array_prepend
        array_push_back array_push_front array_reduce array_resize array_reverse array_reverse_sort
        array_select array_slice array_sort array_to_string array_to_string_comma_default
        array_transform array_unique array_value array_where array_zip
        apply element_at filter flatten generate_series grade_up range reduce
        list_append list_apply list_cat list_concat list_contains list_cosine_distance
        list_cosine_similarity list_distance list_distinct list_dot_product list_element
        list_extract list_filter list_grade_up list_has list_has_all list_has_any list_indexof
        list_inner_product list_intersect list_negative_dot_product list_negative_inner_product
        list_pack list_position list_prepend list_reduce list_resize list_reverse list_reverse_sort
        list_select list_slice list_sort list_transform list_unique list_value list_where list_zip
    """,
    "aggregates of one list": """
        list_any_value list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor
        list_bool_and list_bool_or list_count list_entropy list_first list_histogram list_kurtosis
        list_kurtosis_pop list_last list_mad list_max list_median list_min list_mode list_product
        list_sem list_skewness list_stddev_pop list_stddev_samp list_string_agg list_sum
        list_var_pop list_var_samp
    """,
    "structs, maps, unions and enums": """
        row struct_concat struct_contains struct_extract struct_extract_at struct_has struct_indexof
        struct_insert struct_keys struct_pack struct_position struct_update struct_values
        cardinality map map_concat map_contains map_contains_entry map_contains_value map_entries
        map_extract map_extract_value map_from_entries map_keys map_values
        union_extract union_tag union_value
        enum_code enum_first enum_last enum_range enum_range_boundary
    """,
    "JSON and variants": """
        array_to_json from_json from_json_strict json json_array json_array_length json_contains
        json_deep_merge json_exists json_extract json_extract_path json_extract_path_text
        json_extract_string json_insert json_keys json_merge_patch json_merge_patch_diff
        json_normalize json_object json_pretty json_quote json_remove json_replace json_set
        json_strip_nulls json_structure json_transform json_transform_strict json_type json_valid
        json_value row_to_json to_json variant_array_length variant_contains variant_exists
        variant_extract variant_extract_string variant_keys variant_type variant_typeof
    """,
    "geometry": """
        st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_geomfromgeojson st_geomfromwkb
        st_intersects_extent vertex_extract
    """,
    "types": "pg_typeof typeof",
}
"""The allowed functions by topic."""

NAMING_AGGREGATES = {"aggregate", "array_aggr", "array_aggregate", "list_aggr", "list_aggregate"}
"""Functions whose second argument names the aggregate that they compute over a list."""

LIST_AGGREGATES = {
    "any_value", "approx_count_distinct", "avg", "bit_and", "bit_or", "bit_xor", "bool_and",
    "bool_or", "count", "entropy", "first", "histogram", "kurtosis", "kurtosis_pop", "last",
    "mad", "max", "mean", "median", "min", "mode", "product", "quantile", "quantile_cont",
    "quantile_disc", "sem", "skewness", "stddev", "stddev_pop", "stddev_samp", "string_agg",
    "sum", "var_pop", "var_samp", "variance",
}  # fmt: skip
"""The aggregates that those functions may name, without samples like ``reservoir_quantile``."""

ALLOWED = frozenset(name.lower() for group in GROUPS.values() for name in group.split())
"""All entries of the groups in lower case."""


def is_allowed(function: str, arguments: int) -> bool:
    """Return whether expressions may call a function with that many arguments.

    >>> is_allowed("LOWER", 1), is_allowed("random", 0)
    (True, False)
    >>> is_allowed("age", 2), is_allowed("age", 1)
    (True, False)
    """
    name = function.lower()
    return name in ALLOWED or f"{name}/{arguments}" in ALLOWED or name in NAMING_AGGREGATES
