SELECT CASE WHEN pmc > 0 THEN CAST(amc AS DECIMAL(15, 4)) / CAST(pmc AS DECIMAL(15, 4)) END
    AS am_pm_ratio
FROM (
    SELECT count(*) AS amc
    FROM web_sales, household_demographics, time_dim, web_page
    WHERE ws_sold_time_sk = t_time_sk AND ws_ship_hdemo_sk = hd_demo_sk
        AND ws_web_page_sk = wp_web_page_sk AND t_hour BETWEEN 9 AND 10 AND hd_dep_count = 2
        AND wp_char_count BETWEEN 5000 AND 5200
) AS morning, (
    SELECT count(*) AS pmc
    FROM web_sales, household_demographics, time_dim, web_page
    WHERE ws_sold_time_sk = t_time_sk AND ws_ship_hdemo_sk = hd_demo_sk
        AND ws_web_page_sk = wp_web_page_sk AND t_hour BETWEEN 15 AND 16 AND hd_dep_count = 2
        AND wp_char_count BETWEEN 5000 AND 5200
) AS afternoon
ORDER BY am_pm_ratio
LIMIT 100
